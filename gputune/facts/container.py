"""The container that this process runs in, and the device files that it has been given."""

from dataclasses import dataclass

from gputune.facts.gpu_device_files import device_files
from gputune.host import Host

_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    kind: str | None = None
    """kubernetes, docker, podman, apptainer or another runtime's own name; None if there is no sign of a container."""
    gpu_device_files: tuple[str, ...] = ()
    infiniband: bool = False
    """There are device files of InfiniBand, through which NCCL communicates with other nodes."""


def read(host: Host) -> Container:
    return Container(
        kind=_kind(host),
        gpu_device_files=device_files(host),
        infiniband=any(name.startswith("uverbs") for name in host.names("/dev/infiniband")),
    )


def _kind(host: Host) -> str | None:
    """The container's kind. No single sign is conclusive, so the more specific ones come first."""
    if "KUBERNETES_SERVICE_HOST" in host.environ:
        return "kubernetes"
    if any(variable in host.environ for variable in _VARIABLES):
        return "apptainer"
    if host.exists("/run/.containerenv"):
        return "podman"
    if host.exists("/.dockerenv"):
        return "docker"
    return host.environ.get("container") or None
