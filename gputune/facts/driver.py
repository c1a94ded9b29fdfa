"""The NVIDIA driver: its user part as NVML tells it, its kernel part as the kernel does, and the CUDA it supports."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.facts._nvml_answers import text, whole
from gputune.facts.gap import Gaps
from gputune.host import Host, Nvml, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """An error that the driver logged about a GPU."""

    number: int
    """Its kind, of NVIDIA's list of Xid errors."""
    address: str
    """The GPU's, as the driver writes it: `0000:3b:00`."""
    count: int
    hours_ago: float | None = None
    """Since the last of them; None where the log does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    nvml: bool
    """NVML answers here."""
    version: str | None = None
    """Of the user-mode driver, through NVML."""
    kernel_version: str | None = None
    """Of the kernel module, from /proc/driver/nvidia/version."""
    cuda: str | None = None
    """The newest CUDA that this driver runs without a compatibility package."""
    xids: tuple[Xid, ...] | None = None
    """What the kernel's log holds of them; None where it could not be read (a gap says why) or there is no driver."""


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
    """None without an NVIDIA kernel module, which is no gap: there is nothing to read."""
    try:
        found = re.search(r"Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", host.read("/proc/driver/nvidia/version"))
    except Unreadable:
        return None
    return found.group(1) if found else None


_RECORD = re.compile(
    r"^(?:\d+,\d+,(\d{1,18}),[^;\n]*;)?.*NVRM: Xid \(PCI:([0-9a-fA-F:.]+)[^)]*\): (\d{1,6})", re.MULTILINE
)
"""A line of /dev/kmsg: priority, number, microseconds since boot, flags; then the text."""


def _xids(log: str, uptime_hours: float | None) -> tuple[Xid, ...]:
    times: dict[tuple[int, str], list[float | None]] = {}
    for since_boot, address, number in _RECORD.findall(log):
        known = uptime_hours is not None and since_boot
        ago = max(0.0, (uptime_hours or 0) - int(since_boot) / 3.6e9) if known else None
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
