"""The device files through which a process reaches its GPUs."""

import re
from collections.abc import Sequence

from gputune.host import Host

CONTROL, MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
COMMON = (CONTROL, MEMORY)


def device_files(host: Host) -> tuple[str, ...]:
    """The GPUs' device files that this process may open. A scheduler's cgroup may forbid others that are listed too."""
    return tuple(path for path in _listed(host) if path == "/dev/dxg" or not host.forbidden(path))


def forbidden_files(host: Host) -> tuple[str, ...]:
    """The GPUs' device files that are listed, and that permissions or a cgroup forbid this process to open."""
    return tuple(path for path in _listed(host) if path != "/dev/dxg" and host.forbidden(path))


def _listed(host: Host) -> list[str]:
    paths = (f"/dev/{name}" for name in host.names("/dev"))
    return [path for path in paths if path == "/dev/dxg" or re.fullmatch(r"/dev/nvidia\d+", path)]


def common_files(host: Host) -> tuple[Sequence[str], Sequence[str]]:
    """The device files shared by all GPUs that do not exist, and those that this process may not open.

    NVML opens the first of them, CUDA both.
    """
    listed = host.names("/dev")
    missing = [path for path in COMMON if path.rpartition("/")[2] not in listed]
    return missing, [path for path in COMMON if path not in missing and host.forbidden(path)]
