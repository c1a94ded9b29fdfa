"""The NVIDIA driver: its user part as NVML tells it, its kernel part as the kernel does, and the CUDA it supports."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.facts._nvml_answers import text, whole
from gputune.facts.gap import Gaps
from gputune.host import Host, Nvml, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    __pydantic_config__ = {"strict": True, "extra": "forbid"}

    nvml: bool
    """NVML answers here."""
    version: str | None = None
    """Of the user-mode driver, through NVML."""
    kernel_version: str | None = None
    """Of the kernel module, from /proc/driver/nvidia/version."""
    cuda: str | None = None
    """The newest CUDA that this driver runs without a compatibility package."""


def read(host: Host, nvml: Nvml | None, gaps: Gaps) -> Driver:
    version = cuda = None
    if nvml is not None:
        version = gaps.read("driver.version", lambda: text(nvml.system("DriverVersion")))
        cuda = gaps.read("driver.cuda", lambda: _cuda(whole(nvml.system("CudaDriverVersion_v2"))))
    return Driver(nvml=nvml is not None, version=version, kernel_version=_kernel(host), cuda=cuda)


def _cuda(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _kernel(host: Host) -> str | None:
    """None without an NVIDIA kernel module, which is no gap: there is nothing to read."""
    try:
        found = re.search(r"Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", host.read("/proc/driver/nvidia/version"))
    except Unreadable:
        return None
    return found.group(1) if found else None
