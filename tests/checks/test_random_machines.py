"""Machines of random answers, right and wrong: whatever they say, they are read, judged and reported.

No exception, no check that fails, no machine that takes 2 s, a remedy from WARNING up, and pure data.
"""

import io
import json
import random
import time
from dataclasses import asdict

import pytest
from recorded import RecordedHost, RecordedNvml

from gputune import checks, facts
from gputune.host import nvml
from gputune.report import nfd, prometheus, terminal

FOLDERS = ("nvidia-h200-x1", "nvidia-h200-x8", "cpu-only")
SLOWEST_SECONDS = 2.0
VARIABLES = checks.variables()

HOSTILE = (
    "", " ", "\n", "\0", "\x1b[31mred\x1b[0m", "\udcff", "\ud800", "\u202egnp", "e\u0301" * 40, "٣", "½",
    "💥" * 200, "a" * 5000,
    "-1", "1e400", "nan", "inf", "0x10", "99999999999999999999999", "9" * 5000, "1,2;3", "0;1", "../..", "/", "//",
    "%s%n{}",
    "$(reboot)", "`id`", "'\"", "[red]x[/red]", "GPU-", "all", "none", "void", "max", "max 100000", "-1 100000",
    "10000 100000",
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 7, 8, 15, 64, 255, 4096, 1 << 31, 1 << 32, (1 << 64) - 1, 1 << 64, 10**400, -1, -(10**30))
ODD = (*NUMBERS, None, True, False, 0.5, -0.0, float("nan"), float("inf"), *HOSTILE)
NEWER_CALLS = (
    "GraphicsRunningProcesses", "DisplayActive", "NumGpuCores", "VbiosVersion", "GspFirmwareVersion",
    "FieldValues:[230]", "MemoryInfo",
)  # fmt: skip
FILES = (
    "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/uptime", "/proc/self/limits", "/proc/self/status",
    "/proc/self/cgroup", "/proc/self/mountinfo", "/proc/driver/nvidia/version", "/dev/kmsg", "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
    "/sys/fs/cgroup/memory.stat", "/sys/fs/cgroup/cgroup.controllers", "/dev/nvidia0", "/dev/nvidia7", "/dev/nvidiactl",
    "/dev/nvidia-uvm", "/dev/dxg", "/sys/bus/pci/devices/0000:01:00.0/uevent", "/.dockerenv", "/run/.containerenv",
    "torch.py", "/etc/nccl.conf",
)  # fmt: skip
NAMES = (
    *sorted(VARIABLES), "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD", "SLURM_JOB_ID", "SLURM_CPUS_ON_NODE", "SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS",
    "LOCAL_WORLD_SIZE",
    "SLURM_STEP_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "TORCHELASTIC_RUN_ID", "KUBERNETES_SERVICE_HOST",
    "container", "HOME", "PATH",
    "TMPDIR", "XDG_CACHE_HOME", "NCCL_P2P_DISABLE", "NCCL_DEBUG", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF",
    "ACCELERATE_MIXED_PRECISION", "LSB_JOBID", "CUDA_MPS_PIPE_DIRECTORY", "SLURM_JOB_GRES",
    "NVIDIA_DRIVER_CAPABILITIES",
)  # fmt: skip
TORCH = (
    "python", "executable", "torch", "cuda", "hip", "folder", "arch_list", "flags", "threads", "api_conflict",
    "compile", "cudnn", "nccl", "cublas", "cublaslt", "bundled", "loaded", "devices", "pynvml", "gaps",
)  # fmt: skip
LOGS = (
    "3,9,88,-;NVRM: Xid (PCI:0000:00:08): 79, pid=1, name=python, GPU has fallen off the bus.\n",
    "3,9,99999999999999999999,-;NVRM: Xid (PCI:0000:00:06.0): 999999, \x1b[2J\n",
    "[ 12.3] NVRM: Xid (0000:01:00): 31, Ch 00000010\n", "NVRM: Xid (PCI:", "NVRM: Xid (PCI::::): 1\n",
    "\udcff\udcfe\n",
    "6,1,5,-;nvidia-nvswitch0: SXid (PCI:0000:c5:00.0): 12028, Non-fatal, Link 32\n",
    "4,1,5,-;NVRM: RmInitAdapter failed! (0x22:0x38:802)\n",
    "2,1,5,-;mce: [Hardware Error]: Machine check events logged\n",
    "3,1,5,-;pcieport 0000:00:01.0: AER: Uncorrected (Fatal) error received\n",
)  # fmt: skip


class Machine(RecordedHost):
    """A recorded machine whose NVML may fail as a whole or lie about its number of GPUs."""

    def __init__(self, folder, claimed=None, **overrides):
        super().__init__(folder, **overrides)
        self.claimed = claimed

    def nvml(self):
        answers = super().nvml()
        return _Claiming(answers.answers, self.claimed) if self.claimed is not None else answers


class _Claiming(RecordedNvml):
    def __init__(self, answers, claimed):
        super().__init__(answers)
        self.claimed = claimed

    def count(self):
        return self.claimed

    def device(self, index, name, *args):
        return super().device(index % max(1, len(self.answers["devices"])), name, *args)


def value(dice, depth=0):
    """Anything that JSON, or a lying library, may give."""
    kind = dice.randrange(9 if depth < 3 else 6)
    if kind < 6:
        return dice.choice(ODD)
    if kind == 6:
        return [value(dice, depth + 1) for _ in range(dice.choice((0, 1, 2, 3, 64, 300) if depth == 0 else (0, 1, 2)))]
    names = (
        "pid",
        "usedGpuMemory",
        "total",
        "used",
        "busId",
        "state",
        "status",
        "healthMask",
        "name",
        "unreadable",
        "x",
    )
    return {dice.choice(names): value(dice, depth + 1) for _ in range(dice.randrange(4))}


def failure(dice):
    name = dice.choice((*nvml.ERRORS, "NVMLError_IrqIssue"))
    return nvml.error(name, dice.choice(("odd\x1b[2J", "\udcff", "x" * 3000)))


def answer(dice, usual):
    """An answer of NVML: mostly the usual one, else another one of its type, one of any type, or an error."""
    kind = dice.random()
    if kind < 0.5:
        return usual
    if kind < 0.7:
        return failure(dice)
    if kind < 0.85 and isinstance(usual, list) and usual:
        return [dice.choice(NUMBERS) for _ in usual]
    if kind < 0.85 and isinstance(usual, dict):
        return {name: dice.choice((given, dice.choice(ODD))) for name, given in usual.items()}
    return dice.choice(NUMBERS) if kind < 0.85 else _no_error(value(dice))


def _no_error(given):
    return given if not isinstance(given, dict) or "unreadable" not in given else {}


def nvml_answers(dice, folder):
    if dice.random() < 0.1:
        return failure(dice)
    usual = RecordedHost(dice.choice(FOLDERS[:2])).nvml_answers
    wrong = dice.choice((0.02, 0.2, 1.0))
    devices = [
        {call: answer(dice, given) if dice.random() < wrong else given for call, given in device.items()}
        | {call: answer(dice, dice.choice(ODD)) for call in NEWER_CALLS if dice.random() < 0.5}
        for device in usual["devices"]
    ]
    if dice.random() < 0.2:
        devices = [dict(devices[0]) for _ in devices]  # one UUID, one address
    system = {call: answer(dice, given) for call, given in usual.items() if call != "devices"}
    return {**system, "devices": devices[: dice.randrange(1, 9)]}


def torch_answers(dice):
    if dice.random() < 0.1:
        return failure(dice)
    laid = {}
    for name in TORCH:
        if name != "gaps" and dice.random() < 0.3:
            laid[name] = value(dice)
    recorded = RecordedHost(dice.choice(FOLDERS)).torch
    if dice.random() < 0.3:
        devices = recorded.get("devices") or [{}]
        laid["devices"] = [{**one, dice.choice([*one, "x"]): value(dice)} for one in devices] * dice.choice((1, 1, 40))
    return laid


def mount(dice):
    """A control group, perhaps a deep one, on a machine where it is or is not."""
    parts = [dice.choice(("a", "b", "..", "pod-1", "job.scope"))] * dice.choice((0, 1, 3, 1900))
    group = "/" + "/".join(parts)
    files = {
        "/proc/self/cgroup": dice.choice((f"0::{group}\n", f"3:cpu,memory:{group}\n0::{group}\n", f"0::{group}" * 9)),
        "/proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "/sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    }
    folder = "/sys/fs/cgroup" + (group if group != "/" else "")
    limits = {"cpu.max": ("10000 100000", "max 100000", "-1"), "memory.max": ("max", "1", str(1 << 40), "-1")}
    files |= {f"{folder}/{name}": dice.choice(texts) for name, texts in limits.items() if dice.random() < 0.5}
    return files


def text(dice, given):
    """A file's text: another one, a cut, repeated or shuffled one, or none."""
    kind = dice.randrange(7)
    if kind == 0 or not given:
        return dice.choice((None, *HOSTILE))
    if kind == 1:
        return given[: dice.randrange(len(given))]
    if kind == 2:
        return given[:2000] * dice.choice((2, 50))
    if kind == 3:
        words = given[:5000].split(" ")
        dice.shuffle(words)
        return " ".join(words)
    letters = list(given[:5000])
    for _ in range(dice.randrange(1, 30)):
        letters[dice.randrange(len(letters))] = dice.choice("0 9\n-:;.\0\x1b٣\udcffNa")
    return "".join(letters)


def log(dice):
    """A kernel's log, at times as large as its buffer may be."""
    lines = [dice.choice((*LOGS, *HOSTILE)) for _ in range(dice.choice((0, 1, 5, 300)))]
    return "".join(lines) * dice.choice((1, 1, 1, 200 if len(lines) < 10 else 3))


def machine(seed):
    """The machine of this number, always the same one."""
    dice = random.Random(seed)
    folder = dice.choice(FOLDERS)
    files = RecordedHost(folder).files
    garbled = {path: text(dice, files.get(path, "")) for path in FILES if dice.random() < 0.15}
    garbled |= mount(dice) if dice.random() < 0.4 else {}
    garbled |= {"/dev/kmsg": log(dice)} if dice.random() < 0.6 else {}
    environ = {name: dice.choice((*HOSTILE, "1", "8", "0,1,2", "/no/where")) for name in NAMES if dice.random() < 0.15}
    overrides = {
        "files": garbled,
        "environ": environ,
        "nvml": nvml_answers(dice, folder),
        "torch": torch_answers(dice),
        "where": dice.choice(({"folder": None}, {"folder": "/x/torch"}, {}, {"folder": value(dice)}, failure(dice))),
        "affinity": dice.choice(([0], list(range(16)), list(range(0, 1024, 3)))),
        "shm": [1, 4096, dice.choice((0, 16384, 1 << 60)), 1, dice.choice((0, 1)), 1, 1, 1, 0, 255],
        "user": dice.choice(((0, "root", "/root"), (1234, None, None), (2**32 - 1, "\udcff", "/"))),
        "closed": dice.choice(((), ("/",), ("/tmp",))),
        "denied": dice.choice(((), ("/dev/nvidia0",))),
        "space": dice.choice((0, 1 << 20, 1 << 62)),
    }
    claimed = dice.choice(NUMBERS) if dice.random() < 0.15 else None
    host = Machine(folder, claimed, **overrides)
    if isinstance(host.torch, dict) and dice.random() < 0.3:
        host.torch["gaps"] = dice.choice((value(dice), {name: value(dice) for name in TORCH}))
    return host


def strange(found, findings, seconds):
    faults = [f"{one.check}: {one.message}" for one in findings if "the check failed" in one.message]
    faults += [
        f"{one.check} has no remedy" for one in findings if one.severity in ("WARNING", "ERROR") and not one.remedy
    ]
    faults += [f"took {seconds:.1f} s"] if seconds >= SLOWEST_SECONDS else []
    json.dumps([asdict(found), *map(asdict, findings)], allow_nan=False)
    return faults


def report(found, findings, printed):
    for text_of in (nfd.text, prometheus.text):
        text_of(found, findings).encode()
    if not printed:
        return
    with io.TextIOWrapper(io.BytesIO(), encoding="utf-8") as stream:
        terminal.print_findings(findings, stream)
        terminal.print_gaps(terminal.unsaid(found.gaps, findings), stream)
        stream.flush()


PRINTED_OF = 5
"""Of as many machines one is printed as tables, which takes longer than all the rest; all are written otherwise."""


def faults_of(seed):
    host = machine(seed)
    start = time.process_time()
    found = facts.read(host, variables=VARIABLES)
    findings = checks.run(found)
    faults = strange(found, findings, time.process_time() - start)
    report(found, findings, printed=seed % PRINTED_OF == 0)
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 150, 25))
def test_a_random_machine_is_read_judged_and_reported(first):
    assert not [(seed, faults) for seed in range(first, first + 25) if (faults := faults_of(seed))]


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("first", range(150, 3000, 150))
def test_three_thousand_random_machines(first):
    assert not [(seed, faults) for seed in range(first, first + 150) if (faults := faults_of(seed))]


def test_a_machine_is_the_same_each_time():
    assert facts.read(machine(3)) == facts.read(machine(3))
