"""Which container this is, and which device files it got."""

from __future__ import annotations

from dataclasses import dataclass

from gputune.facts import gpu
from gputune.host import Host

_VARIABLES = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    kind: str | None = None
    """kubernetes, docker, podman, apptainer or another runtime's own word; None outside a container, as far as one can tell."""
    gpu_device_files: tuple[str, ...] = ()
    infiniband: bool = False
    """InfiniBand's device files are here, through which NCCL talks to other nodes."""


def read(host: Host) -> Container:
    return Container(
        kind=_kind(host),
        gpu_device_files=gpu.device_files(host),
        infiniband=any(name.startswith("uverbs") for name in host.names("/dev/infiniband")),
    )


def _kind(host: Host) -> str | None:
    """No single sign is conclusive; the more specific ones are asked first."""
    if "KUBERNETES_SERVICE_HOST" in host.environ:
        return "kubernetes"
    if any(variable in host.environ for variable in _VARIABLES):
        return "apptainer"
    if host.exists("/run/.containerenv"):
        return "podman"
    if host.exists("/.dockerenv"):
        return "docker"
    return host.environ.get("container") or None
