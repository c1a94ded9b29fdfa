"""If a GPU was requested, is there one, and can torch use it?

A GPU is requested by NVIDIA_VISIBLE_DEVICES, by a device file, by a scheduler's grant, or by `gputune check
--require-gpu` or `--expect-gpus N`. Without one the job runs on the CPU, slowly and without an error. The remedy
depends on the reason that torch gives. A container whose device files are all there and none may be opened had its GPUs
taken away while it ran: `systemctl daemon-reload` on the host does that where systemd manages the cgroups. A Jetson
board needs the build of torch that NVIDIA makes for it: other wheels for ARM have no code for its integrated GPU.

Source: NVIDIA Container Toolkit, environment variables and troubleshooting (containers losing access to GPUs); CUDA C++
Programming Guide, CUDA Environment Variables; CUDA Runtime API, error codes; NVIDIA, Installing PyTorch for Jetson.
"""

from gputune.checks._absent_gpu import by_cause, get_one, give_back
from gputune.checks._answers import Facts, Finding, Findings, Measurements, counted, error, not_applicable, ok, unknown
from gputune.checks._jetson import on_board
from gputune.checks._questions import cause, gap, gpu_asked_for, has_gpu, number, nvidia_files, required
from gputune.checks.cuda_visible_devices import hidden
from gputune.checks.nvml_missing import BROKEN
from gputune.facts import Gap
from gputune.facts.visible_gpus import VARIABLE

SCHEDULERS = ("slurm", "lsf", "pbs")
"""The schedulers whose jobs see the device files of GPUs that they were not given."""
HANGS = "whether there is a GPU is not known, since NVML hangs or crashes: see nvml_missing"
ELSEWHERE: dict[str | None, str] = {
    "version_mismatch": "NVML rejects the kernel module's version: see driver_mismatch",
    "no_answer": HANGS,
    "killed": HANGS,
    "exited": HANGS,
}
"""By the reason why NVML does not answer, the check that complains of it."""


def check(facts: Facts, measurements: Measurements) -> Findings:
    seen = facts.libraries.device_count
    if facts.libraries.hip:
        yield not_applicable(f"torch {facts.libraries.torch} is built for AMD's GPUs, which gputune does not support")
    elif seen:
        yield ok(f"torch sees {counted(seen, 'GPU')}")
    elif facts.board and not hidden(facts):
        yield on_board(facts, facts.board)
    elif facts.gpus:
        yield _listed(facts)
    else:
        yield _none(facts)


def _listed(facts: Facts) -> Finding:
    """The finding if NVML lists GPUs and torch sees none."""
    listed, failure = f"NVML lists {counted(len(facts.gpus), 'GPU')}", gap(facts, "libraries.devices")
    if hidden(facts):
        message = f"{listed}; {VARIABLE}={facts.environment.get(VARIABLE)!r} hides them from torch"
        return error(message, f"unset {VARIABLE}") if required(facts) else not_applicable(message)
    if facts.libraries.device_count is None and failure is None:
        return ok(listed)  # no torch, or a build without CUDA: other checks say so
    if elsewhere := _elsewhere(facts, failure):
        return not_applicable(f"{listed}; {elsewhere}")
    message = f"{listed}, but torch can use none{f' ({failure.reason})' if failure else ''}"
    return error(message, by_cause(facts, failure), fact=failure.fact if failure else None)


def _elsewhere(facts: Facts, failure: Gap | None) -> str | None:
    """The reason why torch cannot use the GPUs if another check complains about it; else None."""
    if failure and failure.cause == "fabric_not_ready":
        return "torch waits for Fabric Manager to set up their links: see fabric_manager"
    kernel, user = facts.driver.kernel_version, facts.driver.version
    if kernel and user and kernel != user:
        return f"the kernel module is {kernel}, the driver's libraries are {user}: see driver_mismatch"
    driver, torch = number(facts.driver.cuda), number(facts.libraries.cuda)
    if driver and torch and driver[0] < torch[0] and not (failure and failure.cause):
        return f"the driver supports CUDA {facts.driver.cuda}, torch needs {facts.libraries.cuda}: see driver_cuda"
    return None


def _none(facts: Facts) -> Finding:
    """The finding if neither NVML nor torch lists a GPU."""
    asked = gpu_asked_for(facts)
    if asked and nvidia_files(facts) and hidden(facts):
        message = f"a GPU was requested ({', '.join(asked)}), but {VARIABLE} hides it"
        return error(message, f"unset {VARIABLE}")
    if _taken_away(facts, asked):
        return _revoked(facts, asked)
    if told := _told_elsewhere(facts):
        return not_applicable(told)
    if asked:
        message = f"a GPU was requested ({', '.join(asked)}), but neither NVML nor torch finds one"
        return error(message, get_one(facts))
    if facts.container.gpu_device_files:
        return unknown("WSL's /dev/dxg may be any vendor's GPU; if it is NVIDIA's, its Windows driver does not answer")
    return not_applicable("no GPU was requested, and there is none")


def _told_elsewhere(facts: Facts) -> str | None:
    """The check that complains of NVML itself, which cannot be asked or cannot list the GPUs; None if it answers."""
    why = cause(facts, "driver.nvml")
    if why in ELSEWHERE:
        return ELSEWHERE[why]
    fails = why in (*BROKEN, "driver_not_loaded") or gap(facts, "gpu.count")
    return "NVML does not list the GPUs that there are: see nvml_missing" if has_gpu(facts) and fails else None


def _taken_away(facts: Facts, asked: list[str]) -> bool:
    """No device file of a GPU may be opened, which is right only in the job of a scheduler that granted none."""
    if not facts.container.forbidden_device_files or nvidia_files(facts):
        return False
    return bool(asked or facts.scheduler.name not in SCHEDULERS)


def _revoked(facts: Facts, asked: list[str]) -> Finding:
    files = facts.container.forbidden_device_files
    what = f"{files[0]} to {files[-1]}" if len(files) > 1 else files[0]
    failure = gap(facts, "driver.nvml")
    signs = f"; a GPU was requested ({', '.join(asked)})" if asked else ""
    message = f"this process may open none of the GPUs' device files ({what}){signs}"
    why = f" ({failure.reason})" if failure else ""
    return error(f"{message}{why}", give_back(facts), what.split()[0], failure.fact if failure else None)
