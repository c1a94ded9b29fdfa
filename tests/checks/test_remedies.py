"""Every remedy that the checks give over many faults and surroundings: what it may look like, and that it parses."""

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
from making import command, row
from manifests import valid
from recorded import NOT_SUPPORTED, RecordedHost, facts_of
from trees import CGROUP

from gputune import checks, cli
from gputune.checks._remedies import reset, reset_all, torch_build
from gputune.host import Unreadable

GIB = 1 << 30
ONE, EIGHT = "nvidia-h200-x1", "nvidia-h200-x8"
BUS = "/sys/bus/pci/devices"
LIMITS = "/proc/self/limits"
OLD_LIBRARY = "/opt/old lib/libcudnn.so.9"
VERSION = "/proc/driver/nvidia/version"
FLAGS = RecordedHost().torch["flags"]
NEEDS = RecordedHost().torch["compile"]


def limits(name, value):
    return {LIMITS: f"{name:<26}{value:<21}1048576              units\n", "/dev/infiniband/uverbs0": ""}


def uevent(driver):
    return {f"{BUS}/0000:00:06.0/uevent": f"DRIVER={driver}\nPCI_CLASS=30200\nPCI_ID=10DE:2335\n"}


def module(version):
    return {VERSION: f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n"}


def compiling(**needs):
    return {"torch": {"compile": {**NEEDS, **needs}}, "environ": {"CC": None, "CXX": None}}


ON_A_GPU = [
    {"TotalEccErrors:1,0": 3}, {"RemappedRows": [0, 1, 1, 0]}, {"RemappedRows": [0, 1, 0, 1]},
    {"RetiredPagesPendingStatus": 1}, {"NvLinkState:7": 0}, {"CurrPcieLinkWidth": 8}, {"PowerManagementLimit": 500_000},
    {"EnforcedPowerLimit": 450_000}, {"ApplicationsClock:1": 1200}, {"CurrentClocksEventReasons": 2},
    {"CurrentClocksEventReasons": 0xC8}, {"Temperature:0": 88}, {"PersistenceMode": 0}, {"ComputeMode": 3},
    {"ComputeMode": 2}, {"MigMode": [1, 1]}, {"MigMode": [0, 1]}, {"CpuAffinity:64": [0, 0, 1]},
    {"ComputeRunningProcesses": [{"pid": 1, "usedGpuMemory": None}]}, {"CudaComputeCapability": [7, 5]},
    {"CudaComputeCapability": [6, 1]}, {"Name": "NVIDIA H100 80GB HBM3"}, {"EccMode": [0, 0]}, {"EccMode": [1, 0]},
    {"GpuFabricInfoV": {"state": 2}}, {"GpuFabricInfoV": {"state": 3, "status": 0, "healthMask": 1}},
]  # fmt: skip
"""NVML's answers about one GPU of eight."""

NVML_FAILS = [
    "not_installed", "library_not_found", "driver_not_loaded", "gpu_lost", "needs_reset", "unknown_error", "timeout",
    "no_permission", "version_mismatch", "no_answer", "killed", None,
]  # fmt: skip

VARIABLES = [
    {"CUDA_VISIBLE_DEVICES": ""}, {"CUDA_VISIBLE_DEVICES": "0,9"}, {"CUDA_VISIBLE_DEVICES": "all"},
    {"CUDA_LAUNCH_BLOCKING": "1"}, {"NCCL_DEBUG": "INFO", "CUDNN_LOGLEVEL_DBG": "3"}, {"NCCL_P2P_DISABLE": "1"},
    {"CUDA_INJECTION64_PATH": "/opt/x.so"}, {"LD_PRELOAD": "/opt/libToolsInjection64.so /usr/lib/libjemalloc.so.2"},
    {"NVIDIA_TF32_OVERRIDE": "0"}, {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    {"CUDA_MPS_PIPE_DIRECTORY": "/mps"}, {"TORCHELASTIC_RUN_ID": "7", "LOCAL_WORLD_SIZE": "4", "OMP_NUM_THREADS": "1"},
    {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0-3", "SLURM_CPUS_PER_TASK": "1"},
    {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0", "SLURM_SHARDS_ON_NODE": "4"},
    {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_CPUS_PER_TASK": "64"}, {"ACCELERATE_MIXED_PRECISION": "bf16"},
    {"NVIDIA_DRIVER_CAPABILITIES": "compute"}, {"TMPDIR": "/none"}, {"USER": None, "HOME": None},
]  # fmt: skip

OTHERS = [
    {"torch": {"torch": "1.13.1+cu117", "cuda": "11.7"}}, {"torch": {"cuda": None, "devices": []}},
    {"torch": {"torch": None, "gaps": {"torch": {"type": "ModuleNotFoundError", "name": "torch", "message": "none"}}}},
    {"torch": {"torch": None, "gaps": {"torch": "ImportError: no"}}}, {"torch": {"cuda": "14.0", "devices": []}},
    {"torch": {"pynvml": "11.5.0", "executable": "/opt/my env/bin/python"}}, {"torch": {"arch_list": ["sm_50"]}},
    {"torch": {"threads": 4096}}, {"torch": {"flags": {**FLAGS, "deterministic_algorithms": True}}},
    {"torch": {"flags": {**FLAGS, "anomaly_detection": True}}}, {"torch": {"api_conflict": "a mix"}},
    {"torch": {"flags": {**FLAGS, "cudnn_deterministic": True, "cudnn_benchmark": True}}},
    {"torch": {"loaded": [OLD_LIBRARY], "bundled": ["/x/libcudnn.so.9"], "cudnn": 7605},
     "environ": {"LD_LIBRARY_PATH": "/opt/old lib:/opt/mpi/lib"}, "files": {OLD_LIBRARY: ""}},
    {"torch": {"cudnn": 7605}}, {"torch": {"loaded": ["/a/libcudnn.so.9", "/b/libcudnn.so.9"]}},
    compiling(compiler=None), compiling(headers=False), compiling(triton=None), compiling(cache=None),
    {"torch": {"torch": "2.6.0"}, "user": (1234, None, None)}, {"files": {"torch.py": ""}},
    {"files": limits("Max open files", 100)}, {"files": limits("Max locked memory", 65536)}, {"space": 0},
    {"closed": ["/root"]}, {"closed": ["/"]}, {"shm": [4096, 4096, 16384, 1, 1, 1, 1, 1, 0, 255]},
    {"files": {f"{CGROUP}/cpu.max": "50000 100000"}}, {"files": {f"{CGROUP}/cpu.max": "400000 100000"}},
    {"files": {f"{CGROUP}/memory.max": str(64 * GIB), f"{CGROUP}/memory.current": str(64 * GIB - 1),
               f"{CGROUP}/memory.stat": "inactive_file 0\nactive_file 0\n"}},
    {"files": {f"{CGROUP}/cpu.max": "400000 100000", f"{CGROUP}/cpu.stat": "nr_periods 9000\nnr_throttled 8000\n"}},
    {"files": module("570.86.10")}, {"files": module("590.44.01")},
    {"files": {"/dev/kmsg": "3,9,88,-;NVRM: Xid (PCI:0000:00:08): 79, pid=1, GPU has fallen off the bus.\n"}},
    {"files": {"/dev/kmsg": "3,9,88,-;NVRM: Xid (PCI:0000:00:08): 63, pid=1, Row remapping.\n"}},
]  # fmt: skip

LOADS = [{"throttle_reasons": 0xC8}, {"throttle_reasons": 6.0}, {"pcie_generation": 3.0}, {"gpu_processes": 3.0}]

SURROUNDINGS = [
    ("docker", {}), ("podman", {}), ("kubernetes", {"name": "kubernetes"}), ("apptainer", {}), (None, {}),
    (None, {"name": "slurm", "gpus": "0,1", "gpu_count": 2}),
]  # fmt: skip
"""The kind of container, and what the scheduler says."""


def faults_of_many():
    """Faults whose remedies are the same in any surroundings: a recorded machine, and what is other on it."""
    for gpu in ON_A_GPU:
        yield EIGHT, {"gpu": gpu, "gpu_index": 5}
    for environ in VARIABLES:
        yield EIGHT, {"environ": environ}


def faults():
    """Faults whose remedies may depend on it."""
    for cause in NVML_FAILS:
        yield ONE, {"nvml": Unreadable("NVML: it fails", cause), "torch": {"devices": []}}
    for overrides in OTHERS:
        yield ONE, overrides
    yield "cpu-only", {"files": uevent("nouveau")}
    yield "cpu-only", {"files": uevent(""), "environ": {"NVIDIA_VISIBLE_DEVICES": "all"}}
    yield "cpu-only", {"files": uevent("nvidia"), "environ": {"NVIDIA_VISIBLE_DEVICES": "void"}}
    yield "cpu-only", {"environ": {"NVIDIA_VISIBLE_DEVICES": "all"}}


def placed(facts):
    """The machine in each of the surroundings."""
    for kind, granted in SURROUNDINGS:
        container, scheduler = replace(facts.container, kind=kind), replace(facts.scheduler, **granted)
        yield replace(facts, container=container, scheduler=scheduler)


@cache
def remedies():
    """Every remedy, with the check that gave it first."""
    found = {}
    machines = [facts_of(machine, **fault) for machine, fault in faults_of_many()]
    machines += [each for machine, fault in faults() for each in placed(facts_of(machine, **fault))]
    for facts in machines:
        for one in checks.run(facts):
            found.setdefault(one.remedy, one.check)
    for conditions in LOADS:
        measured = [row("precision", "throughput", 100.0, "cuda:5", conditions=conditions)]
        for one in checks.run(facts_of(EIGHT), measured):
            found.setdefault(one.remedy, one.check)
    found.pop(None)
    return found


PROGRAMS = (
    "apptainer", "apt-get", "df", "dmesg", "docker", "echo", "export", "fuser", "gputune", "kubectl", "ldconfig", "ls",
    "mkdir", "mv", "nvidia-smi", "podman", "printf", "ps", "python", "python3", "sleep", "srun", "sudo", "taskset",
    "top", "ulimit", "unset",
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
    assert len(set(remedies().values())) >= 45
    assert len(of_kind("shell")) >= 80
    assert len(of_kind("manifest")) >= 5


def test_a_remedy_is_either_words_or_a_command_whose_words_stand_behind_a_number_sign():
    mixed = {remedy: check for remedy, check in of_kind("prose").items() if IN_PROSE.search(remedy)}
    assert not mixed
    for remedy in of_kind("shell", "manifest", "python"):
        assert "on the host: " not in remedy
        assert "\n" not in remedy


def test_what_needs_root_says_so_and_where():
    for remedy, check in of_kind("shell").items():
        typed, _, comment = remedy.partition("  # ")
        assert ("sudo " not in typed) or "as root" in comment, (check, remedy)
        ends = any(word in typed for word in ("sudo reboot", "--gpu-reset", " restart CONTAINER", "kubectl delete"))
        assert not ends or "ends its jobs" in comment, (check, remedy)


def test_a_gpu_is_named_by_its_bus_address_and_a_job_s_share_is_not_widened():
    for remedy, check in of_kind("shell").items():
        for named in re.findall(r"nvidia-smi (?:mig )?-i (\S+)", remedy):
            assert re.match(r"[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.0", named.lower()), (check, remedy)
        assert "--gpus all" not in remedy or check in ("nvidia_visible_devices", "gpu_absent"), (check, remedy)
        assert "export HOME=" not in remedy, (check, remedy)


@pytest.mark.parametrize("shell", ["bash"])
def test_what_is_for_a_shell_is_parsed_by_one(tmp_path, shell):
    script = tmp_path / "remedies.sh"
    script.write_text("".join(f"{remedy}\n" for remedy in of_kind("shell", "slurm")))
    checked = command([shell, "-n", str(script)])
    assert (checked.returncode, checked.stderr) == (0, "")


def test_what_is_for_python_is_parsed_by_it():
    for remedy in of_kind("python"):
        compile(remedy, "remedy", "exec")


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
