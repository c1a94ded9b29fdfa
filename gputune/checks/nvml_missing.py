"""Does NVML, NVIDIA's management library, work on this machine with a GPU?

NVML reports power limits, clocks, temperatures and the driver's version; without it gputune cannot see that a card is
throttled or capped, and torch may find no GPU at all. A container has the library only with the capability `utility`:
`docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility`. Outside a container the driver installs it, as
libnvidia-ml.so.1. Where the library is there and fails, the driver or a GPU is at fault; a call that never returns is a
driver that hangs, which only a reboot mends.

Source: NVIDIA Container Toolkit, driver capabilities, and troubleshooting; nvml.h, nvmlReturn_t.
"""

import shlex

from gputune.checks._answers import Facts, Finding, Findings, Measurements, error, not_applicable, ok, unread, warning
from gputune.checks._questions import cause, gap, has_gpu, nvidia_files, reason
from gputune.checks._remedies import APPTAINER_GPUS, on_host, started, typed
from gputune.facts import Gap

CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
HANGS = ("no_answer", "killed", "exited")
BROKEN = ("gpu_lost", "needs_reset", "unknown_error", "timeout")
"""The causes for which a driver or a GPU is at fault, not an installation."""
LOG = "sudo dmesg | grep -iE 'nvrm|xid'"
LOOK = on_host(LOG, note="says what the driver or a GPU reports; a reboot may mend it")
LOAD = on_host("sudo modprobe nvidia", changes_node=True, note=f"if it fails: {LOG} says why")
REBOOT = on_host(
    "sudo reboot",
    ends_jobs=True,
    note=f"drain it first; {LOG} says before that which GPU failed; if it comes back, replace that GPU",
)
PERMISSION = typed("ls -l /dev/nvidia*", note="names the group that may open them: ask to be added to it")


def check(facts: Facts, measurements: Measurements) -> Findings:
    """An answer, a call that hung or crashed (in NVML's start, its list of GPUs or elsewhere), or none."""
    silent = next((one for one in facts.gaps if one.fact.startswith(("driver.", "gpu.")) and one.cause in HANGS), None)
    if silent and silent.fact in ("driver.nvml", "driver.version", "driver.cuda", "gpu.count"):
        yield error(f"NVML cannot be asked: {silent.reason}", REBOOT, fact=silent.fact)
    elif silent:
        yield unread(facts, silent.fact, "what NVML was asked after a GPU stopped answering")
    elif facts.driver.nvml:
        yield _listing(facts)
    elif facts.board:
        yield not_applicable(f"{facts.board} may have no NVML, or only part of it")
    elif not has_gpu(facts):
        yield not_applicable("no NVIDIA GPU was found, so NVML is not needed")
    elif cause(facts, "driver.nvml") == "version_mismatch":
        yield not_applicable("NVML is installed, and rejects a kernel module of another version: see driver_mismatch")
    else:
        yield _absent(facts)


def _listing(facts: Facts) -> Finding:
    if cause(facts, "gpu.count") in (*BROKEN, "implausible"):
        message = f"NVML answers, and cannot list the GPUs: {reason(facts, 'gpu.count')}"
        return error(message, LOOK, fact="gpu.count")
    return unread(facts, "gpu.count", "NVML's list of GPUs") if gap(facts, "gpu.count") else ok("NVML answers")


def _absent(facts: Facts) -> Finding:
    where = ", ".join(nvidia_files(facts)) or "torch's list of GPUs"
    missing = gap(facts, "driver.nvml") or Gap(fact="driver.nvml", reason="no reason was given")
    message = f"there is a GPU ({where}), but NVML does not answer: {missing.reason}"
    return (warning if facts.libraries.device_count else error)(message, _remedy(facts, missing), fact="driver.nvml")


def _remedy(facts: Facts, missing: Gap) -> str:
    if missing.cause == "not_installed":
        return f"{shlex.quote(facts.libraries.own_python or 'python3')} -m pip install nvidia-ml-py"
    if missing.cause == "library_not_found":
        return _install(facts)
    if missing.cause == "unknown_error" and facts.container.kind in ("docker", "podman"):
        note = "its devices were taken away, as systemctl daemon-reload does; if it stays, the driver fails: reboot"
        return typed(f"{facts.container.kind} restart CONTAINER", where="on the host", ends_jobs=True, note=note)
    by_cause = {"driver_not_loaded": LOAD, "no_permission": PERMISSION}
    return REBOOT if missing.cause in BROKEN else by_cause.get(missing.cause or "", LOOK)


def _install(facts: Facts) -> str:
    """Where the library is not there: a container is given it at its start, and elsewhere it is part of the driver."""
    granted, branch = facts.environment.get(CAPABILITIES), (facts.driver.kernel_version or "").partition(".")[0]
    package = f"sudo apt-get install libnvidia-compute-{branch or 'VERSION'}"
    if facts.container.kind == "apptainer":
        return APPTAINER_GPUS
    if granted is not None and {"utility", "all"} & set(granted.split(",")):
        note = f"if it is there, start the container anew with NVIDIA's Container Toolkit; else {package}"
        return typed("ldconfig -p | grep libnvidia-ml.so.1", where="on the host", note=note)
    if facts.container.kind or granted is not None:
        was = "" if granted is None else f"it was started with {granted or 'none'}"
        pod = f'env: [{{name: {CAPABILITIES}, value: "compute,utility"}}]'
        return started(facts, f"-e {CAPABILITIES}=compute,utility", pod, note=was)
    if not branch:
        return "install the driver's libnvidia-ml.so.1, of the version of the loaded kernel module"
    return typed(package, root=True, changes_node=True, note="on Debian: libnvidia-ml1; of the loaded module's version")
