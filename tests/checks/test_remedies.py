"""Every remedy that the checks give to the table's faults, in many surroundings: how it looks, and that it parses."""

import re
import shlex
import shutil
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import typer
import yaml
from faults.tables import FAULTS
from making import command
from manifests import valid
from recorded import NOT_SUPPORTED, RecordedHost, facts_of

from gputune import checks, cli
from gputune.checks._remedies import reset, reset_all, torch_build
from gputune.host import Unreadable

ONE = "nvidia-h200-x1"
OLD_LIBRARY = "/opt/old lib/libcudnn.so.9"


def module(version):
    text = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n"
    return {"files": {"/proc/driver/nvidia/version": text}}


MORE = [
    (ONE, {"torch": {"pynvml": "11.5.0", "executable": "/opt/my env/bin/python"}}),
    (ONE, {"environ": {"LD_PRELOAD": "/opt/libToolsInjection64.so /usr/lib/libjemalloc.so.2"}}),
    (ONE, {"torch": {"loaded": [OLD_LIBRARY], "bundled": ["/x/libcudnn.so.9"], "cudnn": 7605},
           "environ": {"LD_LIBRARY_PATH": "/opt/old lib:/opt/mpi/lib"}, "files": {OLD_LIBRARY: ""}}),
    (ONE, {"torch": {"loaded": ["/a/libcudnn.so.9", "/b/libcudnn.so.9"]}}),
    (ONE, {"torch": {"compile": {**RecordedHost().torch["compile"], "cache": None}}, "closed": ["/"]}),
    (ONE, module("570.86.10")), (ONE, module("590.44.01")), (ONE, {"torch": {"devices": []}}),
    *((ONE, {"nvml": Unreadable("NVML: it fails", cause), "torch": {"devices": []}})
      for cause in ("library_not_found", "no_permission", None)),
    ("cpu-only", {"environ": {"NVIDIA_VISIBLE_DEVICES": "all"}}),
]  # fmt: skip
"""Recorded machines with what no fault of the table has, such as names with a blank."""

SURROUNDINGS = [
    ("docker", {}), ("podman", {}), ("kubernetes", {"name": "kubernetes"}), ("apptainer", {}), (None, {}),
    (None, {"name": "slurm", "gpus": "0,1", "gpu_count": 2}),
]  # fmt: skip
"""The kind of container, and what the scheduler says."""


def placed(facts):
    for kind, granted in SURROUNDINGS:
        container, scheduler = replace(facts.container, kind=kind), replace(facts.scheduler, **granted)
        yield replace(facts, container=container, scheduler=scheduler)


@cache
def remedies():
    found = {}
    for fault in FAULTS:
        machine = fault.machine()
        facts, asked = machine.facts(), {name for one in fault.expected for name in one.check.split("|")}
        for each in [facts, *placed(facts)]:
            for one in checks.run(each, machine.measurements, only=asked):
                found.setdefault(one.remedy, one.check)
    for folder, overrides in MORE:
        for each in placed(facts_of(folder, **overrides)):
            for one in checks.run(each):
                found.setdefault(one.remedy, one.check)
    found.pop(None)
    return found


PROGRAMS = (
    "apptainer", "apt-get", "cat", "df", "dmesg", "docker", "echo", "export", "fuser", "gputune", "kubectl", "ldconfig",
    "ls", "mkdir", "mv", "nvidia-smi", "podman", "printf", "ps", "python", "python3", "sleep", "srun", "sudo",
    "taskset", "top", "ulimit", "unset",
)  # fmt: skip
SHELL = re.compile(
    rf"(\w+=\S+ )*({'|'.join(PROGRAMS)}|'?/\S*( \S*)?bin/python\S*)( |$)|\w+=\$\(|\w+=\S+ (/\S*/)?python"
)
FRAGMENT = re.compile(r"(spec|resources|env|securityContext): ")
PYTHON = re.compile(r"torch\.\w")
IN_PROSE = re.compile(r"sudo |&&|\$\(|--\w+=| \||docker run|apt-get|pip install|  #")
"""What only a command has."""


def kind(remedy):
    if remedy.startswith("#SBATCH "):
        return "slurm"
    if FRAGMENT.match(remedy):
        return "manifest"
    if PYTHON.match(remedy):
        return "python"
    return "shell" if SHELL.match(remedy) else "prose"


def of_kind(*kinds):
    return {remedy: check for remedy, check in remedies().items() if kind(remedy) in kinds}


@pytest.mark.slow
def test_many_checks_complain_so_that_this_says_something():
    assert len(set(remedies().values())) >= 65
    assert len(of_kind("shell")) >= 250
    assert len(of_kind("manifest")) >= 10


@pytest.mark.slow
def test_a_remedy_is_either_words_or_a_command_whose_words_stand_behind_a_number_sign():
    mixed = {remedy: check for remedy, check in of_kind("prose").items() if IN_PROSE.search(remedy)}
    assert not mixed
    for remedy in of_kind("shell", "manifest", "python"):
        assert "on the host: " not in remedy
        assert "\n" not in remedy


@pytest.mark.slow
def test_what_needs_root_says_so_and_where():
    for remedy, check in of_kind("shell").items():
        typed, _, comment = remedy.partition("  # ")
        assert ("sudo " not in typed) or "as root" in comment, (check, remedy)
        ends = any(word in typed for word in ("sudo reboot", "--gpu-reset", " restart CONTAINER", "kubectl delete"))
        assert not ends or "ends its jobs" in comment, (check, remedy)


@pytest.mark.slow
def test_a_gpu_is_named_by_its_bus_address_and_a_job_s_share_is_not_widened():
    for remedy, check in of_kind("shell").items():
        for named in re.findall(r"nvidia-smi (?:mig )?-i (\S+)", remedy):
            assert re.match(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.0", named.lower()), (check, remedy)
        assert "--gpus all" not in remedy or check in ("nvidia_visible_devices", "gpu_absent"), (check, remedy)
        assert "export HOME=" not in remedy, (check, remedy)


@pytest.mark.slow
def test_what_is_for_a_shell_is_parsed_by_one(tmp_path):
    script = tmp_path / "remedies.sh"
    script.write_text("".join(f"{remedy}\n" for remedy in of_kind("shell", "slurm")))
    checked = command(["bash", "-n", str(script)])
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.slow
def test_what_is_for_python_is_parsed_by_it():
    for remedy in of_kind("python"):
        compile(remedy, "remedy", "exec")


@pytest.mark.slow
def test_gputune_s_own_commands_are_its_own():
    verbs = {one.name or one.callback.__name__: one for one in _verbs()}
    asked = [shlex.split(words) for remedy in remedies() for words in re.findall(r"gputune [a-z]+(?: --\S+)*", remedy)]
    assert asked
    for _, verb, *options in asked:
        known = {option for one in verbs[verb].params for option in one.opts}
        assert {option.partition("=")[0] for option in options} <= known, (verb, options)


def _verbs():
    return typer.main.get_command(_registered()).commands.values()


def _registered():
    if not cli.app.registered_commands:
        cli.add_verbs()
    return cli.app


@pytest.mark.cluster
def test_shellcheck_finds_nothing(tmp_path):
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}")
    assert shellcheck, "no shellcheck here: pip install '.[cluster]'"
    for number, remedy in enumerate(of_kind("shell")):
        (tmp_path / f"{number}.sh").write_text(f"{remedy}\n")
    scripts = sorted(tmp_path.glob("*.sh"))
    checked = command([shellcheck, "--shell=bash", "--format=gcc", *map(str, scripts)])
    read = re.sub(rf"{tmp_path}/(\d+)\.sh", lambda name: (tmp_path / f"{name[1]}.sh").read_text(), checked.stdout)
    assert not read
    assert checked.returncode == 0


@pytest.mark.cluster
def test_a_pod_with_the_fragment_is_one_that_kubernetes_takes():
    for remedy in of_kind("manifest"):
        fragment = yaml.safe_load(remedy)
        if "spec" not in fragment:
            fragment = {"spec": {"containers": [{"name": "main", **fragment}]}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, **fragment}
        for container in pod["spec"]["containers"]:
            container["image"] = "gputune"
        valid(yaml.safe_dump(pod))


@pytest.mark.cluster
def test_pip_s_commands_are_pip_s():
    commands = pytest.importorskip("pip._internal.commands")
    asked = re.findall(r"-m pip (\w+) ([^#&\n]+)", "\n".join(of_kind("shell")))
    assert {verb for verb, _ in asked} == {"install", "uninstall"}
    for verb, words in asked:
        options, _ = commands.create_command(verb).parser.parse_args(shlex.split(words))
        url = getattr(options, "index_url", None)
        assert url is None or re.match(r"https://(pypi\.org/simple|download\.pytorch\.org/whl/cu\d{3})$", url)


CURED = [
    ("cuda_visible_devices", {"environ": {"CUDA_VISIBLE_DEVICES": ""}}),
    ("cuda_visible_devices", {"environ": {"CUDA_VISIBLE_DEVICES": "0,9"}}),
    ("determinism", {"environ": {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}}),
    ("device_assertions", {"environ": {"PYTORCH_USE_CUDA_DSA": "1"}}),
    ("gpu_shared", {"environ": {"CUDA_MPS_PIPE_DIRECTORY": "/mps"}}),
    ("injection", {"environ": {"CUDA_INJECTION64_PATH": "/opt/x.so"}}),
    ("injection", {"environ": {"LD_PRELOAD": "/opt/libToolsInjection64.so:/opt/my lib/libx.so"}}),
    ("launch_blocking", {"environ": {"CUDA_LAUNCH_BLOCKING": "1"}}),
    ("library_copies", {"environ": {"LD_LIBRARY_PATH": "/opt/old lib:/opt/mpi/lib"}, "files": {OLD_LIBRARY: ""}}),
    ("library_copies", {"environ": {"LD_LIBRARY_PATH": "/opt/old lib/"}, "files": {OLD_LIBRARY: ""}}),
    ("library_logging", {"environ": {"CUDNN_LOGLEVEL_DBG": "3"}}),
    ("memory_caching", {"environ": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}}),
    ("slurm_srun_cpus", {"environ": {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_CPUS_PER_TASK": "64"}}),
    ("tf32_override", {"environ": {"NVIDIA_TF32_OVERRIDE": "0"}}),
    ("torchrun_threads", {"environ": {"TORCHELASTIC_RUN_ID": "7", "LOCAL_WORLD_SIZE": "4", "OMP_NUM_THREADS": "1"}}),
    ("unknown_uid", {"user": (1234, None, None), "torch": {"torch": "2.6.0"}}),
]


@pytest.mark.parametrize(("name", "fault"), CURED)
def test_a_shell_in_which_the_remedy_was_typed_has_the_fault_no_more(name, fault):
    before = RecordedHost(**fault).environ
    [complaint] = [one for one in checks.ask(name, facts_of(**fault)) if one.remedy]
    typed = command(["/bin/bash", "--norc", "-c", f"{complaint.remedy}\nexec /usr/bin/env -0"], env=before)
    after = dict(line.partition("=")[::2] for line in typed.stdout.split("\0") if line)
    environ = dict.fromkeys(before) | after
    findings = list(checks.ask(name, facts_of(**{**fault, "environ": environ})))
    assert {one.severity for one in findings} <= {"OK", "NOT_APPLICABLE"}, (complaint.remedy, findings)


@pytest.mark.parametrize("make", [lambda: reset(facts_of().gpus[0]), reset_all], ids=["one", "all"])
def test_a_host_without_one_of_the_services_is_reset_all_the_same_and_the_others_start_again(tmp_path, make):
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\necho "$*"\n[ "$1" != systemctl ]\n')  # systemctl fails for a unit that is not there
    sudo.chmod(0o755)
    typed = command(["/bin/bash", "-c", make()], env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    stop, does, start = typed.stdout.splitlines()
    assert (stop.split()[:3], start.split()[:3]) == (
        ["systemctl", "stop", "nvidia-persistenced"],
        ["systemctl", "start", "nvidia-persistenced"],
    )
    assert re.fullmatch(r"nvidia-smi (-i 00000000:00:06\.0 )?--gpu-reset", does)


@pytest.mark.parametrize(
    ("own", "driver", "capability", "build"),
    [
        ("12.1", "12.8", [9, 0], "12.1"),
        ("13.2", "13.2", [9, 0], "13.0"),
        ("11.7", "12.8", [9, 0], "12.8"),
        (None, "12.2", [9, 0], "12.1"),
        (None, "13.1", [9, 0], "13.0"),
        (None, "13.1", [7, 0], "12.6"),
        (None, "11.4", [8, 0], "11.8"),
        (None, "10.2", [7, 0], None),
    ],
)
def test_the_build_to_install_is_that_which_is_there_or_the_newest_that_the_driver_runs(own, driver, capability, build):
    major, minor = (int(part) for part in driver.split("."))
    nvml = RecordedHost().nvml_answers | {"CudaDriverVersion_v2": 1000 * major + 10 * minor}
    nvml["devices"][0]["CudaComputeCapability"] = capability
    assert torch_build(facts_of(nvml=nvml, torch={"cuda": own})) == build


def test_without_nvml_the_driver_s_newest_is_not_known():
    missing = Unreadable(NOT_SUPPORTED, "library_not_found")
    assert torch_build(facts_of(nvml=missing, torch={"cuda": None})) is None
