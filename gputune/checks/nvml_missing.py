"""Does NVML, NVIDIA's management library, answer where there is a GPU?

NVML tells power limits, clocks, temperatures and which driver runs; without it gputune cannot see that a card is
throttled or capped, and torch may find no GPU at all. A container gets the library only with the capability `utility`:
`docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility`. Outside a container it is libnvidia-ml.so.1 of the driver.

Source: NVIDIA Container Toolkit, driver capabilities.
"""

from collections.abc import Iterator, Sequence

from gputune.checks import Finding
from gputune.checks._common import gpu_beside, nvidia_files, reason, unread
from gputune.facts import Facts
from gputune.measurement import Measurement

CHECK = "nvml_missing"


def check(facts: Facts, measurements: Sequence[Measurement]) -> Iterator[Finding]:
    if facts.driver.nvml and reason(facts, "gpu.count"):
        yield unread(facts, CHECK, "gpu.count", "NVML's list of GPUs")
    elif facts.driver.nvml:
        yield Finding(check=CHECK, severity="OK", message="NVML answers")
    elif not gpu_beside(facts):
        yield Finding(check=CHECK, severity="NOT_APPLICABLE", message="there is no NVIDIA GPU that NVML could describe")
    else:
        where = ", ".join(nvidia_files(facts)) or "torch's list of GPUs"
        yield Finding(
            check=CHECK,
            severity="WARNING" if facts.libraries.device_count else "ERROR",
            message=f"there is a GPU ({where}), but NVML does not answer: {_why(facts)}",
            remedy=_remedy(facts),
        )


def _why(facts: Facts) -> str:
    return reason(facts, "driver.nvml") or "no reason was given"


def _remedy(facts: Facts) -> str:
    if "nvidia-ml-py" in _why(facts):
        return "pip install nvidia-ml-py"
    return (
        "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; outside a container install the driver's "
        "libnvidia-ml.so.1 (Debian and Ubuntu: apt install libnvidia-compute-VERSION, the running driver's)"
    )
