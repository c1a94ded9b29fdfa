"""How large a container's /dev/shm is to be."""

from __future__ import annotations

from gputune.checks import shm_size

_MIB = 1 << 20


def mebibytes(cpus: int, memory_bytes: int | None) -> int:
    """What DataLoader workers for so many CPUs need, but no more than half of the memory, which it is taken from."""
    wanted = shm_size.gibibytes(cpus) * 1024
    return wanted if memory_bytes is None else max(1, min(wanted, memory_bytes // 2 // _MIB))


def amount(size: int, gibi: str, mebi: str) -> str:
    """Mebibytes as docker (`g`, `m`) or Kubernetes (`Gi`, `Mi`) writes them."""
    return f"{size // 1024}{gibi}" if size % 1024 == 0 else f"{size}{mebi}"
