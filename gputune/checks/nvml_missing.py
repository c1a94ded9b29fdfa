"""Does NVML, NVIDIA's management library, work on this machine with a GPU?

NVML reports power limits, clocks, temperatures and the driver's version; without it gputune cannot see that a card is
throttled or capped, and torch may find no GPU at all. A container has the library only with the capability `utility`:
`docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility`. Outside a container the driver installs it, as
libnvidia-ml.so.1.

Source: NVIDIA Container Toolkit, driver capabilities.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, error, not_applicable, ok, unread, warning
from gputune.checks._questions import cause, has_gpu, nvidia_files, reason

WITH_UTILITY = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"


def check(facts: Facts, measurements: Measurements) -> Findings:
    if facts.driver.nvml and reason(facts, "gpu.count"):
        yield unread(facts, "gpu.count", "NVML's list of GPUs")
    elif facts.driver.nvml:
        yield ok("NVML answers")
    elif not has_gpu(facts):
        yield not_applicable("no NVIDIA GPU was found, so NVML is not needed")
    elif cause(facts, "driver.nvml") == "version_mismatch":
        yield not_applicable("NVML is installed, and rejects a kernel module of another version: see driver_mismatch")
    else:
        yield _absent(facts)


def _absent(facts: Facts) -> Finding:
    where = ", ".join(nvidia_files(facts)) or "torch's list of GPUs"
    why = reason(facts, "driver.nvml") or "no reason was given"
    message = f"there is a GPU ({where}), but NVML does not answer: {why}"
    return (warning if facts.libraries.device_count else error)(message, _remedy(facts), fact="driver.nvml")


def _remedy(facts: Facts) -> str:
    if cause(facts, "driver.nvml") == "not_installed":
        return "pip install nvidia-ml-py"
    granted = facts.environment.get("NVIDIA_DRIVER_CAPABILITIES")
    if granted is not None and not {"utility", "all"} & set(granted.split(",")):
        return f"{WITH_UTILITY} (it was started with {granted or 'none'})"
    return (
        f"{WITH_UTILITY}; outside a container install the driver's "
        "libnvidia-ml.so.1 (Debian and Ubuntu: apt install libnvidia-compute-VERSION, the running driver's)"
    )
