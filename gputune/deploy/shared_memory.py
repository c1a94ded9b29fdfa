"""The size of a container's /dev/shm."""

from gputune.checks import shm_size

_MIB = 1 << 20


def mebibytes(cpus: int, memory_bytes: int | None) -> int:
    """Mebibytes for DataLoader workers on so many CPUs, at most half of the memory, of which /dev/shm is a part."""
    needed = shm_size.gibibytes(cpus) * 1024
    return needed if memory_bytes is None else max(1, min(needed, memory_bytes // 2 // _MIB))


def amount(size: int, gibi: str, mebi: str) -> str:
    """Mebibytes with the suffixes of docker (`g`, `m`) or Kubernetes (`Gi`, `Mi`)."""
    return f"{size // 1024}{gibi}" if size % 1024 == 0 else f"{size}{mebi}"
