"""The device files through which a process reaches its GPUs."""

import re

from gputune.host import Host


def device_files(host: Host) -> tuple[str, ...]:
    """The GPUs' device files that this process may open. A scheduler's cgroup may forbid others that are listed too."""
    return tuple(
        path
        for path in (f"/dev/{name}" for name in host.names("/dev"))
        if path == "/dev/dxg" or (re.fullmatch(r"/dev/nvidia\d+", path) and not host.forbidden(path))
    )
