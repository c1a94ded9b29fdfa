"""The NVIDIA driver: the versions of its libraries, kernel module and CUDA, and the errors that it has logged."""

import re
from dataclasses import dataclass

from gputune.facts._nvml_answers import text, whole
from gputune.facts.gap import Gaps
from gputune.host import Host, Nvml, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """A kind of error that the driver has logged about a GPU."""

    number: int
    """The error's number in NVIDIA's catalogue of Xid errors."""
    address: str
    """The GPU's PCI address as the driver logs it: `0000:3b:00`."""
    count: int
    hours_ago: float | None = None
    """Hours since the latest such error; None if the log has no times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    nvml: bool
    """NVML could be initialised."""
    version: str | None = None
    """The version of the user-mode driver, from NVML."""
    kernel_version: str | None = None
    """The version of the kernel module, from /proc/driver/nvidia/version."""
    cuda: str | None = None
    """The newest CUDA version that this driver runs without a compatibility package."""
    xids: tuple[Xid, ...] | None = None
    """The Xid errors in the kernel's log; None if it could not be read (a gap says why) or no driver is loaded."""


def read(host: Host, nvml: Nvml | None, gaps: Gaps) -> Driver:
    version = cuda = None
    if nvml is not None:
        version = gaps.read("driver.version", lambda: text(nvml.system("DriverVersion")))
        cuda = gaps.read("driver.cuda", lambda: _cuda(whole(nvml.system("CudaDriverVersion_v2"))))
    kernel = _kernel(host)
    xids = gaps.read("driver.xids", lambda: _xids(host.kernel_log(), _uptime_hours(host))) if kernel else None
    return Driver(nvml=nvml is not None, version=version, kernel_version=kernel, cuda=cuda, xids=xids)


def _cuda(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _kernel(host: Host) -> str | None:
    """The kernel module's version; None if no NVIDIA module is loaded, which is not a gap."""
    found = re.search(r"Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", host.read_or_empty("/proc/driver/nvidia/version"))
    return found.group(1) if found else None


_RECORD = re.compile(
    r"^(?:\d+,\d+,(\d{1,18}),[^;\n]*;)?.*NVRM: Xid \(PCI:([0-9a-fA-F:.]+)[^)]*\): (\d{1,6})", re.MULTILINE
)
"""A line of /dev/kmsg: priority, sequence number, microseconds since boot, flags, and after a semicolon the text."""


def _xids(log: str, uptime_hours: float | None) -> tuple[Xid, ...]:
    times: dict[tuple[int, str], list[float | None]] = {}
    for since_boot, address, number in _RECORD.findall(log):
        timed = uptime_hours is not None and since_boot
        ago = max(0.0, (uptime_hours or 0) - int(since_boot) / 3.6e9) if timed else None
        times.setdefault((int(number), address), []).append(ago)
    return tuple(
        Xid(number=number, address=address, count=len(ago), hours_ago=None if ago[-1] is None else round(ago[-1], 1))
        for (number, address), ago in sorted(times.items())
    )


def _uptime_hours(host: Host) -> float | None:
    try:
        return float(host.read("/proc/uptime").split()[0]) / 3600
    except (Unreadable, ValueError, IndexError):
        return None
