"""The NVIDIA driver: the versions of its libraries, kernel module and CUDA, and the errors that it has logged."""

import re
from dataclasses import dataclass
from functools import cache
from math import isfinite

from gputune.facts import kernel_messages, pci, xids
from gputune.facts._nvml_answers import text, whole
from gputune.facts.gap import Gaps
from gputune.facts.kernel_messages import KernelError
from gputune.facts.xids import Xid
from gputune.host import Host, Nvml, Unreadable

__all__ = ["Driver", "KernelError", "Xid", "read"]


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
    kernel_errors: tuple[KernelError, ...] | None = None
    """Other errors in the kernel's log; None where `xids` is None, for the reason of that gap."""


def read(host: Host, nvml: Nvml | None, gaps: Gaps) -> Driver:
    version = cuda = None
    if nvml is not None:
        version = gaps.read("driver.version", lambda: text(nvml.system("DriverVersion")))
        number = gaps.read("driver.cuda", lambda: whole(nvml.system("CudaDriverVersion_v2")))
        cuda = None if number is None else f"{number // 1000}.{number % 1000 // 10}"
    loaded = re.search(r"Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", host.read_or_empty("/proc/driver/nvidia/version"))
    kernel = loaded.group(1) if loaded else None  # without NVIDIA's module that is no gap
    logged = gaps.read("driver.xids", lambda: _logged(host)) if kernel else None
    found, others = logged or (None, None)
    return Driver(
        nvml=nvml is not None, version=version, kernel_version=kernel, cuda=cuda, xids=found, kernel_errors=others
    )


def _logged(host: Host) -> tuple[tuple[Xid, ...], tuple[KernelError, ...]]:
    lines = host.kernel_log().split("\n")
    paths = cache(lambda: pci.paths(host))
    others = kernel_messages.read(lines, lambda address: pci.gpus_at(paths(), address))
    return xids.read(lines, _uptime_hours(host)), others


def _uptime_hours(host: Host) -> float | None:
    try:
        hours = float(host.read("/proc/uptime").split()[0]) / 3600
        return hours if isfinite(hours) else None
    except (Unreadable, ValueError, IndexError):
        return None
