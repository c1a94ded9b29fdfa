"""Faults made for real, and their remedies typed as they are printed, in the shell that has the fault: it is gone then.

`gputune check` runs, its remedy, and `gputune check` once more, all in one shell: on this host without the signs of a
container, in a control group, on a node whose GPUs are a stub's (stub_nvml), or with a virtual environment whose pip
finds only wheels that are made here. Needs root.
"""

import base64
import json
import os
import re
import shlex
import sys
import zipfile
from pathlib import Path

import pytest
import stand_in
from checks.test_remedies import of_kind, remedies
from making import before_others, command, environ, executable, on_path
from nvidia_smi import Refused, stand_ins, taken
from real.test_limits import NOBODY, booted
from stub_nvml.node import GPU, Node, library, unshared, with_stand_in, without_torch

pytestmark = pytest.mark.real

CHECK = "-P -m gputune check --json --fail-on never --only"

BARE = """
set -e
mount -t tmpfs root /mnt
for each in /*; do
  [ "$each" = /mnt ] || [ ! -d "$each" ] && continue
  if [ -L "$each" ]; then cp -a "$each" /mnt; else mkdir "/mnt$each"; mount --rbind "$each" "/mnt$each"; fi
done
mkdir /mnt/mnt
exec chroot /mnt "$@"
"""
"""The same folders without the files of / by which a container is recognised."""

IN_ONE_SHELL = """
{fault}
{check} > "$OUT/before"
eval "$(cat "$OUT/remedy" 2>/dev/null || $READ "$OUT/before")"
{check} > "$OUT/after"
"""
READ = """
import json, os, sys
found = [one["remedy"] for one in json.load(open(sys.argv[1]))["findings"] if one["remedy"]]
print(*(remedy.partition(os.environ["FROM"])[2] if "FROM" in os.environ else remedy for remedy in found), sep="\\n")
"""
"""The remedies; with FROM, what stands in them behind that."""


def host_words():
    return [*unshared(), "sh", "-c", BARE, "sh"]


@pytest.fixture
def typed(tmp_path):
    """What a check complains of, once its fault is made by shell commands, and what it finds after its remedy was
    typed in the same shell.
    """
    tmp_path.chmod(0o777)
    (tmp_path / "read.py").write_text(READ)
    tools = tmp_path / "tools"
    tools.mkdir()
    executable(tools / "sudo", '#!/bin/sh\nexec "$@"\n')

    def typed(name, fault, words=None, check=None, python=sys.executable, **variables):
        own = {"OUT": str(tmp_path), "READ": f"{sys.executable} {tmp_path}/read.py", "TMPDIR": str(tmp_path)}
        script = IN_ONE_SHELL.format(fault=fault, check=check or f"{python} {CHECK} {name}")
        env = environ(**own, **{"PATH": on_path(tools), **variables})
        for gone in ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "SLURM_JOB_ID", "KUBERNETES_SERVICE_HOST"):
            env.pop(gone, None)
        ran = command([*(host_words() if words is None else words), "/bin/bash", "-c", script], env)
        return answers(tmp_path, ran)

    return typed


def answers(folder, ran):
    files = [folder / "before", folder / "after"]
    assert all(file.exists() and file.stat().st_size for file in files), (ran.stdout, ran.stderr)
    before, after = (json.loads(file.read_text())["findings"] for file in files)
    complaints = [one for one in before if one["remedy"]]
    assert complaints, before
    return complaints[0], after


def assert_gone(answered):
    complaint, after = answered
    assert {one["severity"] for one in after} <= {"OK", "NOT_APPLICABLE"}, (complaint["remedy"], after)


CLOSED_TMP = """
echo 'import tempfile; tempfile.gettempdir(); __version__ = "2.13.0"' > $OUT/torch.py
export PYTHONPATH=$OUT:$PYTHONPATH HOME=$OUT TMPDIR=$OUT/none
for each in /tmp /var/tmp; do mount --rbind $each $each; mount -o remount,bind,ro $each; done
mount --bind $OUT $OUT; mount -o remount,bind,rw $OUT; cd /proc
"""
"""Torch needs a folder for temporary files at once, as it does where dill is installed. This test's own stays open."""
ON_THE_HOST = [
    ("shm_size", "mount -t tmpfs -o size=16m shm /dev/shm"),
    ("open_files_limit", "ulimit -Sn 100"),
    ("thread_count", "export TORCHELASTIC_RUN_ID=7 LOCAL_WORLD_SIZE=$(nproc) OMP_NUM_THREADS=$(nproc)"),
    ("thread_count", "export TORCHELASTIC_RUN_ID=7 LOCAL_WORLD_SIZE=$(nproc) MKL_NUM_THREADS=$(nproc)"),
    ("injection", "export CUDA_INJECTION64_PATH=/opt/x.so"),
    ("launch_blocking", "export CUDA_LAUNCH_BLOCKING=1"),
    ("library_logging", "export NCCL_DEBUG=TRACE CUDNN_LOGLEVEL_DBG=3"),
    ("memory_caching", "export PYTORCH_NO_CUDA_MEMORY_CACHING=1"),
    ("device_assertions", "export PYTORCH_USE_CUDA_DSA=1"),
    ("compile_needs", "export CXX=/none/c++"),
    ("compile_needs", "mkdir $OUT/ro && mount -t tmpfs -o ro no $OUT/ro && export TORCHINDUCTOR_CACHE_DIR=$OUT/ro"),
    ("cuda_visible_devices", "export CUDA_VISIBLE_DEVICES=0"),
    ("cache_folders", "export HOME=$OUT/home && mkdir $HOME && mount -t tmpfs -o ro closed $HOME"),
    ("cache_folders", "export HOME=$OUT/home && mkdir $HOME && mount -t tmpfs -o size=1m small $HOME"),
    ("cache_folders", "export TMPDIR=$OUT/none HOME=$OUT"),
    ("interpreter", "cd $OUT && touch torch.py"),
    ("torch_version", CLOSED_TMP),
]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "fault"), ON_THE_HOST)
def test_a_shell_of_the_host(typed, name, fault):
    assert_gone(typed(name, fault))


def test_a_user_without_a_name(typed, tmp_path):
    path = stand_in.torch(tmp_path)
    (tmp_path / "torch.py").write_text((tmp_path / "torch.py").read_text().replace("2.13.0", "2.6.0"))
    words = [*host_words(), *NOBODY, "env", "-u", "USER", "-u", "LOGNAME"]
    assert_gone(typed("unknown_uid", "cd /", words, PYTHONPATH=path))


def test_the_python_that_trains_has_another_torch(typed, tmp_path):
    """Its remedy is another check, whose answer then is the one that counts."""
    other = executable(tmp_path / "python", f'#!/bin/sh\nexec {with_stand_in()} "$@"\n')
    complaint, _ = typed("interpreter", "cd /", PATH=on_path(tmp_path))
    assert complaint["remedy"] == f"gputune check --python {other}"
    ran = command(
        ["/bin/bash", "-c", f"{complaint['remedy']} --json --only interpreter"], environ(PATH=on_path(tmp_path))
    )
    [after] = json.loads(ran.stdout)["findings"]
    assert after["severity"] == "OK"


NO_TORCH = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
"""A torch.py, where torch would take time and memory."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cpus", [0.5, 1.5])
def test_a_control_group_s_quota(typed, cgroup, cpus):
    assert_gone(typed("cpu_quota", "cd /", [*cgroup(cpus=cpus).words, *host_words()]))


def test_a_control_group_that_was_stopped(typed, cgroup, tmp_path):
    """Its counts stay, and so only the remedy's second half, which lifts the quota, shows at once."""
    (tmp_path / "torch.py").write_text(NO_TORCH)
    words, path = [*cgroup(cpus=0.1).words, *host_words()], before_others(tmp_path)
    spin = 'timeout 2 bash -c "while :; do :; done"'
    assert_gone(typed("cpu_throttled", spin, words, PYTHONPATH=path, FROM="; or "))


HOLDING = f"""
coproc {sys.executable} -c "import time; held = b'1' * (1400 << 20); print(1, flush=True); time.sleep(99)"
read -u "${{COPROC[0]}}"
trap "kill $COPROC_PID" EXIT
"""


def test_a_control_group_without_memory_left(typed, cgroup, tmp_path):
    (tmp_path / "torch.py").write_text(NO_TORCH)
    words, path = [*cgroup(memory_bytes=1536 << 20).words, *host_words()], before_others(tmp_path)
    assert_gone(typed("memory_left", HOLDING, words, PYTHONPATH=path))


ADAPTER = """
mkdir -p $OUT/dev && mount -t tmpfs dev $OUT/dev && mkdir $OUT/dev/infiniband $OUT/dev/shm
for name in null zero full random urandom tty; do touch $OUT/dev/$name; mount --bind /dev/$name $OUT/dev/$name; done
cp -a /dev/fd /dev/std* $OUT/dev/; touch $OUT/dev/infiniband/uverbs0
mount --rbind $OUT/dev /dev
mount -t tmpfs etc {etc} && mkdir -p /etc/security/limits.d
ulimit -l 64
"""
NO_CAPABILITY = ["setpriv", "--inh-caps=-ipc_lock", "--bounding-set=-ipc_lock"]


UML = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run; mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+cpu +memory" > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job; cd /sys/fs/cgroup/job; {limits}; echo $$ > cgroup.procs; cd /
export TMPDIR=/run HOME=/run OUT=/run USER=root
{words} > /run/said 2>&1
echo BEGIN; for each in before after; do base64 -w 0 /run/$each; echo; done; cat /run/said
halt -f
"""
IN_UML = [
    ("cpu_quota", "echo 50000 100000 > cpu.max", "cd /", None),
    ("cpu_throttled", "echo 20000 100000 > cpu.max", 'timeout 2 bash -c "while :; do :; done"', "; or "),
    ("memory_left", "echo 1024M > memory.max", "fallocate -l 940M /run/held", None),
    ("memlock_limit", "true", ADAPTER.format(etc="/etc/security/limits.d"), None),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "limits", "fault", "behind"), IN_UML, ids=[name for name, *_ in IN_UML])
def test_on_a_kernel_of_its_own(tmp_path, name, limits, fault, behind):
    """With cgroup v2, and with a root that may raise what may be locked, as PAM does at the login."""
    (tmp_path / "torch.py").write_text(NO_TORCH)
    (tmp_path / "read.py").write_text(READ)
    executable(tmp_path / "sudo", '#!/bin/sh\nexec "$@"\n')
    check = f"{sys.executable} {CHECK} {name}"
    if name == "memlock_limit":
        check = f'su -m -s /bin/bash root -c "{" ".join(NO_CAPABILITY)} {check}"'
    script = IN_ONE_SHELL.format(fault=fault, check=check)
    own = {
        "READ": f"{sys.executable} {tmp_path}/read.py",
        "PYTHONPATH": before_others(tmp_path),
        "PATH": on_path(tmp_path),
    }
    variables = environ(**own, **({"FROM": behind} if behind else {}), TMPDIR="/run", HOME="/run", OUT="/run")
    words = ["env", "-i", *(f"{variable}={value}" for variable, value in variables.items()), "sh", "-c", BARE, "sh"]
    printed = booted(tmp_path, UML.format(limits=limits, words=shlex.join([*words, "/bin/bash", "-c", script])))
    lines = [base64.b64decode(line) for line in printed.partition("BEGIN\n")[2].split("\n")[:2]]
    assert all(lines), printed
    before, after = (json.loads(line)["findings"] for line in lines)
    [complaint] = [one for one in before if one["remedy"]]
    assert_gone((complaint, after))


def test_memory_that_slurmd_lets_be_locked(typed, tmp_path):
    """What systemd would read is written; what it then does cannot be run here."""
    executable(tmp_path / "tools" / "systemctl", '#!/bin/sh\necho "$@" >> $OUT/asked\n')
    fault = f"{ADAPTER.format(etc='/etc/systemd/system')}\nexport SLURM_JOB_ID=7"
    check = f"{' '.join(NO_CAPABILITY)} {sys.executable} {CHECK} memlock_limit; cp -r /etc/systemd/system $OUT"
    complaint, _ = typed("memlock_limit", fault, check=f"{{ {check}; }}")
    assert complaint["severity"] == "WARNING"
    written = tmp_path / "system" / "slurmd.service.d" / "memlock.conf"
    assert written.read_text() == "[Service]\nLimitMEMLOCK=infinity\n"
    assert (tmp_path / "asked").read_text().splitlines() == ["daemon-reload", "restart slurmd"]


# --- Nodes with a stub for NVML ---------------------------------------------------------------------------------------

STUBBED = 'stubbed() {{ STUB_NVML="gpus=2;$(paste -sd";" "$OUT/faults")" {check}; }}\n{fault}'


@pytest.fixture
def on_node(typed, tmp_path):
    """The same on a node of two H100s that are a stub's, with stand-ins for nvidia-smi and systemctl."""

    def on_node(name, faults="", fault="", python=None, services=None, **variables):
        path = stand_ins(tmp_path, faults, services or {})
        python = python or without_torch()
        variables = {"OUT": str(tmp_path), "PATH": path, **variables}
        variables["READ"] = f"{sys.executable} {tmp_path}/read.py"
        stubbed = STUBBED.format(check=f"{python} {CHECK} {name}", fault=fault)
        script = IN_ONE_SHELL.format(fault=stubbed, check="stubbed")
        ran = Node(faults, 2, python, environ=variables).command("/bin/bash", "-c", script, cwd=tmp_path)
        return answers(tmp_path, ran)

    return on_node


SETTINGS = [
    ("persistence_mode", "PersistenceMode@1=value:0"),
    ("power_limit", "PowerManagementLimit@1=value:500000"),
    ("clock_lock", "ApplicationsClock@1=value:1200"),
    ("clock_lock", "CurrentClocksEventReasons@1=value:2"),
    ("compute_mode", "ComputeMode@1=value:2"),
    ("compute_mode", "ComputeMode@1=value:3"),
    ("ecc_mode", "EccMode@1=value:1"),
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "fault"), SETTINGS)
def test_a_setting_of_one_gpu(on_node, name, fault):
    complaint, after = on_node(name, f"nvmlDeviceGet{fault}")
    assert complaint["subject"] == "GPU 1"
    assert_gone((complaint, after))


RESETS = [
    ("ecc_mode", "nvmlDeviceGetEccMode@1=value:0"),
    ("ecc_errors", "nvmlDeviceGetTotalEccErrors@1=value:3"),
    ("row_remapping", "nvmlDeviceGetRemappedRows@1=value:1"),
    ("mig_mode", "nvmlDeviceGetMigMode@1=value:1"),
    ("gpu_lost", "*@1=999"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "fault"), RESETS)
def test_a_reset_of_one_gpu_finds_no_service_in_its_way_and_the_services_run_again_then(on_node, tmp_path, name, fault):
    complaint, after = on_node(name, fault, services={"nvidia-persistenced": True})
    assert complaint["subject"] == "GPU 1"
    assert_gone((complaint, after))
    assert json.loads((tmp_path / "services").read_text()) == {"nvidia-persistenced": True}


OF_VARIABLES = [
    ("cuda_visible_devices", "export CUDA_VISIBLE_DEVICES="),
    ("cuda_visible_devices", "export CUDA_VISIBLE_DEVICES=0,9"),
    ("cuda_visible_devices", "export CUDA_VISIBLE_DEVICES='0;1'"),
    ("gpu_shared", "export CUDA_MPS_PIPE_DIRECTORY=/mps"),
    ("nccl_variables", "export NCCL_P2P_DISABLE=1"),
    ("nccl_variables", "export NCCL_SHM_DISABLE=1"),
    ("tf32_override", "export NVIDIA_TF32_OVERRIDE=0"),
    ("torchrun_threads", "export TORCHELASTIC_RUN_ID=7 LOCAL_WORLD_SIZE=2 OMP_NUM_THREADS=1"),
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "fault"), OF_VARIABLES)
def test_variables_that_only_matter_with_gpus(on_node, name, fault):
    if name == "torchrun_threads" and len(os.sched_getaffinity(0)) < 4:
        pytest.skip("needs more than three CPUs")
    assert_gone(on_node(name, fault=fault, python=with_stand_in()))


def test_a_stub_of_libcuda_before_the_driver_s_own(on_node):
    """What else stands in the variable, here NVML's folder, stays."""
    stub = 'mkdir -p "$OUT/stubs dir/stubs" && touch "$OUT/stubs dir/stubs/libcuda.so.1"'
    fault = f'{stub} && export LD_LIBRARY_PATH="$OUT/stubs dir/stubs:$LD_LIBRARY_PATH"'
    complaint, after = on_node("library_path", fault=fault, python=with_stand_in(0))
    assert complaint["severity"] == "ERROR"
    assert_gone((complaint, after))


def test_the_slice_to_probe_in_is_one_of_that_gpu(tmp_path):
    path = stand_ins(tmp_path, "", {})
    executable(tmp_path / "bin" / "gputune", '#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES" "$@"\n')
    remedy, *_ = [remedy for remedy, check in remedies().items() if check == "mig_mode" and "-L" in remedy]
    uuid = re.search(r"GPU-[0-9a-f-]+", remedy)[0]
    mine = remedy.replace(uuid, "GPU-00000001-0000-4000-8000-000000000000")
    said = command(["/bin/bash", "-c", mine], environ(PATH=path, ADDRESSES="0000:1b:00.0 0000:43:00.0"))
    assert (said.stdout, said.stderr) == ("MIG-10-0000 probe\n", "")


def test_nvidia_smi_takes_what_the_remedies_ask_of_it():
    asked = [
        words.split() for remedy in remedies() for words in re.findall(r"nvidia-smi((?: +(?!on )[\w.:,=-]+)*)", remedy)
    ]
    commands = {" ".join(words) for words in asked if words and words[0].startswith(("-", "mig", "nvlink"))}
    assert len(commands) >= 15
    for words in commands:
        taken(words.split())


@pytest.mark.parametrize("words", ["-i 0 -L", "-rgc -rac", "--bogus", "-pm", "-c EXCLUSIVE", "mig --gpu 0", "-q -r"])
def test_the_stand_in_refuses_what_nvidia_smi_refuses(words):
    with pytest.raises(Refused):
        taken(words.split())


RECORDER = """#!/bin/sh
line="${0##*/}"; for word in "$@"; do line="$line\t$word"; done; printf '%s\\n' "$line" >> "$LOG"
case "${0##*/}" in sudo) exec "$@" ;; mkdir) exec /bin/mkdir "$@" ;; esac
"""
PROGRAMS = (
    "apptainer", "apt-get", "cat", "df", "dmesg", "docker", "fuser", "gputune", "grep", "head", "kubectl", "ldconfig",
    "ls", "chmod", "id", "modprobe", "mkdir", "mount", "mv", "nvidia-ctk", "nvidia-modprobe", "nvidia-smi", "podman",
    "ps", "python", "python3", "ras-mc-ctl", "reboot", "rmmod", "sleep", "srun", "sudo", "systemctl", "taskset", "tee",
    "top", "update-initramfs",
)  # fmt: skip
VERBS = {
    "apt-get": {"install", "update", "remove"}, "docker": {"run", "restart"}, "podman": {"run", "restart"},
    "kubectl": {"delete"}, "systemctl": {"start", "stop", "restart", "daemon-reload", "reboot", "set-property"},
    "gputune": {"check", "probe"}, "apptainer": {"exec"},
}  # fmt: skip


def test_every_command_is_found_and_gets_its_words_whole(tmp_path):
    """All of them, on a PATH of programs that only write down how they were called."""
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    for name in PROGRAMS:
        executable(programs / name, RECORDER)
    asked = of_kind("shell")
    assert len(asked) >= 80
    for remedy in asked:
        ran = command(
            ["/bin/bash", "-c", remedy], {"PATH": str(programs), "LOG": str(log), "HOSTNAME": "pod"}, cwd=tmp_path
        )
        lost = [line for line in ran.stderr.splitlines() if not re.search(r" /\S.*: No such file or directory", line)]
        assert not lost, (remedy, lost)  # but an interpreter that a recorded machine has
    for program, verb, *words in (line.split("\t") for line in log.read_text().splitlines() if "\t" in line):
        assert verb in VERBS.get(program, {verb}), (program, verb, words)
        assert not (program == "nvidia-smi" and not taken([verb, *words])), words


# --- Packages ---------------------------------------------------------------------------------------------------------

CUDA_TORCH = """
import ctypes, os
__version__ = "{version}"
class version: cuda = {cuda!r}
class _Device: name, major, minor, total_memory, multi_processor_count, uuid = {gpu!r}, 9, 0, 85017493504, 132, ""
class cuda:
    def device_count(): return {gpus}
    def get_device_properties(index): return _Device()
class _C:
    def _cuda_getArchFlags(): return "sm_90"
own = os.path.join(os.path.dirname(os.path.dirname(__file__)), "nvidia", "cudnn", "lib", "libcudnn.so.9")
try:
    library = ctypes.CDLL("libcudnn.so.9")
except OSError:
    library = ctypes.CDLL(own) if os.path.exists(own) else None
class backends:
    class cudnn:
        def version(): return library.cudnnGetVersion()
"""


def torch_wheel(folder, version, cuda="13.0", gpus=2, requires=()):
    files = {"torch/__init__.py": CUDA_TORCH.format(version=version, cuda=cuda, gpus=gpus, gpu=GPU)}
    return wheel(folder, "torch", version, files, requires)


def wheel(folder, name, version, files, requires=()):
    """A wheel with these files, as pip installs it."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        **files,
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {one}\n" for one in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name_, text in files.items():
            archive.writestr(name_, text)
    return path


@pytest.fixture
def venv(tmp_path):
    """An interpreter of its own with a pip, in a folder with a space in its name."""
    folder = tmp_path / "my env"
    made = command([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    assert made.returncode == 0, made.stderr
    import pip

    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
    return folder / "bin" / "python"


@pytest.fixture
def installed(on_node, venv, tmp_path):
    """A check of an environment, into which these wheels were installed before; pip finds those of `index`."""
    index = tmp_path / "index"
    index.mkdir()
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": "/dev/null"}

    def installed(name, *wheels, fault="", **more):
        if wheels:
            words = [str(venv), "-m", "pip", "install", "-q", "--no-deps", *map(str, wheels)]
            done = command(words, environ(**pip))
            assert done.returncode == 0, done.stderr
        only = f"{name} --python '{venv}'"
        return on_node(only, fault=fault, **pip, **more)

    installed.index, installed.old = index, tmp_path / "old"
    return installed


def test_the_deprecated_package_pynvml(installed):
    wheel(installed.index, "nvidia_ml_py", "13.580.82", {"pynvml.py": ""})
    assert_gone(installed("pynvml_package", wheel(installed.old, "pynvml", "11.5.0", {"pynvml.py": ""})))


TORCHES = [
    ("torch_version", "1.13.1+cu117", {"cuda": "11.7"}),
    ("torch_version", None, {}),
    ("torch_cuda_build", "2.13.0+cpu", {"cuda": None}),
    ("driver_cuda", "2.19.0+cu140", {"cuda": "14.0", "gpus": 0}),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "version", "build"), TORCHES)
def test_a_torch_that_does_not_fit(installed, name, version, build):
    """The one that is asked for is in the index, in the build for this driver."""
    torch_wheel(installed.index, "2.13.0+cu130")
    assert_gone(installed(name, *([torch_wheel(installed.old, version, **build)] if version else [])))


def test_a_torch_that_cannot_be_imported(installed):
    torch_wheel(installed.index, "2.13.0+cu130")
    broken = wheel(installed.old, "torch", "2.13.0+cu130", {"torch/__init__.py": "import torch._C_missing\n"})
    complaint, after = installed("torch_version", broken)
    assert complaint["severity"] == "ERROR"
    assert_gone((complaint, after))


def test_a_torch_without_its_triton(installed):
    wheel(installed.index, "triton", "3.8.0", {"triton/__init__.py": ""})
    torch = torch_wheel(installed.index, "2.13.0+cu130", requires=["triton==3.8.0"])
    assert_gone(installed("compile_needs", torch))


CUDNN = "int cudnnGetVersion(void) {{ return {version}; }}\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["library_copies", "tf32_libraries"])
def test_an_old_library_before_torch_s_own(installed, venv, tmp_path, name):
    """The loader's own choice, from real files; what else is in the variable stays."""
    own = next(venv.parents[1].glob("lib/python*/site-packages")) / "nvidia" / "cudnn" / "lib"
    old = tmp_path / "old lib"
    for folder, version in ((own, 92000), (old, 7605)):
        folder.mkdir(parents=True)
        (tmp_path / "cudnn.c").write_text(CUDNN.format(version=version))
        built = ["cc", "-shared", "-o", str(folder / "libcudnn.so.9"), str(tmp_path / "cudnn.c")]
        assert command(built).returncode == 0
    torch = torch_wheel(installed.index, "2.13.0+cu130")
    fault = f'export LD_LIBRARY_PATH="{old}/:{library()}"'
    complaint, after = installed(name, torch, fault=fault)
    assert complaint["remedy"].startswith(f"export LD_LIBRARY_PATH={library()}  # ")
    cublas = [one for one in after if one["severity"] == "UNKNOWN"]  # the stand-in has none
    assert {one["subject"] for one in cublas} <= {None, "cuBLAS"}
    assert_gone((complaint, [one for one in after if one not in cublas]))
