"""The memory that this process may use, and /dev/shm, through which DataLoader workers pass their batches."""

import re
from dataclasses import dataclass

from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable
from gputune.resources import cgroup

# cgroup v1 writes "no limit" as the largest page-aligned 63-bit number.
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    total_bytes: int | None = None
    """The host's memory."""
    limit_bytes: int | None = None
    """The tightest cgroup limit; None without a limit, or where a gap says why."""
    limit_source: str | None = None
    limit_free_bytes: int | None = None
    """The bytes left below that limit; the file cache counts as free, since the kernel drops it if memory runs out."""
    free_bytes: int | None = None
    """The bytes that the host can give to programs without swapping (MemAvailable)."""
    shm_bytes: int | None = None
    shm_free_bytes: int | None = None


def read(host: Host, gaps: Gaps) -> Memory:
    shm, shm_free = gaps.read("memory.shm_bytes", lambda: host.space_bytes("/dev/shm")) or (None, None)
    tightest = gaps.read("memory.limit_bytes", lambda: limit(host))
    return Memory(
        total_bytes=gaps.read("memory.total_bytes", host.memory_bytes),
        limit_bytes=tightest[0] if tightest else None,
        limit_source=tightest[1] if tightest else None,
        limit_free_bytes=gaps.read("memory.limit_free_bytes", lambda: _free(host, *tightest)) if tightest else None,
        free_bytes=gaps.read("memory.free_bytes", lambda: 1024 * _row(host, "/proc/meminfo", "MemAvailable:")),
        shm_bytes=shm,
        shm_free_bytes=shm_free,
    )


def limit(host: Host) -> tuple[int, str] | None:
    """The tightest memory limit along the cgroup chain, in bytes, and the file that sets it; None without a limit."""
    levels = cgroup.values(host, "memory", "memory.limit_in_bytes", "memory.max")
    limits = [(_bytes(path, text), path) for path, text in levels]
    return min((limit for limit in limits if limit[0] < _NO_LIMIT), default=None)


def oom_kills(host: Host) -> int | None:
    """How many processes of this process's cgroup the OOM killer has killed; None if the kernel does not say.
    A kill is counted in the group of the process, whichever group's limit was reached; in v2 also in those above.
    Source: the kernel's "Control Group v2", memory.events; mm/memcontrol.c.
    """
    try:
        path, _ = next(cgroup.values(host, "memory", "memory.oom_control", "memory.events"))
        return _row(host, path, "oom_kill")
    except (Unreadable, StopIteration):
        return None


def _free(host: Host, limit_bytes: int, path: str) -> int:
    """The bytes left below the limit. Both cgroup versions count the file cache as used, so it is added back."""
    folder, _, file = path.rpartition("/")
    usage, total = ("memory.usage_in_bytes", "total_") if file == "memory.limit_in_bytes" else ("memory.current", "")
    used = _bytes(f"{folder}/{usage}", host.read(f"{folder}/{usage}"))
    cache = sum(_row(host, f"{folder}/memory.stat", f"{total}{kind}_file") for kind in ("inactive", "active"))
    return min(limit_bytes, max(0, limit_bytes - used + cache))


def _row(host: Host, path: str, name: str) -> int:
    found = re.search(rf"^{name}\s+([0-9]{{1,20}})\b", host.read(path), re.MULTILINE)
    if not found:
        raise Unreadable(f"{path} has no {name}")
    return int(found[1])


def _bytes(path: str, text: str) -> int:
    value = text.strip()
    if value == "max":
        return _NO_LIMIT
    if not re.fullmatch(r"[0-9]{1,20}", value):
        raise Unreadable(f"{path} reads {value[:60]!r}")
    return int(value)
