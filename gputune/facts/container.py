"""The container that this process runs in, and the device files that it has been given."""

from dataclasses import dataclass

from gputune.facts.visible_gpus import COMMON, device_files, forbidden_files
from gputune.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    kind: str | None = None
    """kubernetes, docker, podman, apptainer or another runtime's own name; None if there is no sign of a container."""
    gpu_device_files: tuple[str, ...] = ()
    forbidden_device_files: tuple[str, ...] = ()
    """The GPUs' device files that are listed here, but that this process may not open."""
    common_files_missing: tuple[str, ...] = ()
    """Which of /dev/nvidiactl and /dev/nvidia-uvm, which all GPUs share, do not exist."""
    common_files_forbidden: tuple[str, ...] = ()
    """Which of the two this process may not open: permissions or a cgroup forbid it."""
    infiniband: bool = False
    """There are device files of InfiniBand, through which NCCL communicates with other nodes."""


def read(host: Host) -> Container:
    listed = host.names("/dev")
    missing = tuple(path for path in COMMON if path.rpartition("/")[2] not in listed)
    return Container(
        kind=_kind(host),
        gpu_device_files=device_files(host),
        forbidden_device_files=forbidden_files(host),
        common_files_missing=missing,
        common_files_forbidden=tuple(path for path in COMMON if path not in missing and host.forbidden(path)),
        infiniband=any(name.startswith("uverbs") for name in host.names("/dev/infiniband")),
    )


def _kind(host: Host) -> str | None:
    """The container's kind. No single sign is conclusive, so the more specific ones come first."""
    signs = {
        "kubernetes": "KUBERNETES_SERVICE_HOST" in host.environ,
        "apptainer": "APPTAINER_CONTAINER" in host.environ or "SINGULARITY_CONTAINER" in host.environ,
        "podman": host.exists("/run/.containerenv"),
        "docker": host.exists("/.dockerenv"),
    }
    return next((kind for kind, is_there in signs.items() if is_there), host.environ.get("container") or None)
