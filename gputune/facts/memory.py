"""Memory that this process may use, and /dev/shm, through which DataLoader workers hand over their batches."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.facts import cgroup
from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable

# cgroup v1 writes "no limit" as the largest page-aligned 63-bit number.
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    __pydantic_config__ = {"strict": True, "extra": "forbid"}

    total_bytes: int | None = None
    """The host's."""
    limit_bytes: int | None = None
    """The tightest cgroup limit; None where there is none (or a gap says why)."""
    shm_bytes: int | None = None
    """Size of /dev/shm."""
    shm_free_bytes: int | None = None


def read(host: Host, gaps: Gaps) -> Memory:
    shm = gaps.read("memory.shm_bytes", lambda: host.space_bytes("/dev/shm"))
    return Memory(
        total_bytes=gaps.read("memory.total_bytes", host.memory_bytes),
        limit_bytes=gaps.read("memory.limit_bytes", lambda: limit(host)),
        shm_bytes=shm[0] if shm else None,
        shm_free_bytes=shm[1] if shm else None,
    )


def limit(host: Host) -> int | None:
    """The tightest memory limit along the cgroup chain, in bytes; None where none is set."""
    limits = [_bytes(*level) for level in cgroup.values(host, "memory", "memory.limit_in_bytes", "memory.max")]
    return min((limit for limit in limits if limit < _NO_LIMIT), default=None)


def _bytes(path: str, text: str) -> int:
    if text.strip() == "max":
        return _NO_LIMIT
    if not re.fullmatch(r"[0-9]{1,20}", text.strip()):
        raise Unreadable(f"{path} reads {text.strip()[:60]!r}")
    return int(text)
