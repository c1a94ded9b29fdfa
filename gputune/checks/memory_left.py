"""Is there enough memory left to keep the kernel from killing a process?

A container's limit is lower than the host's memory, which is what most tools show. When either is used up, the kernel
kills a process: exit code 137, or a DataLoader worker "killed by signal: Killed". /dev/shm counts towards the limit;
the file cache does not, because the kernel drops it first.

Source: Linux, cgroups, memory controller; /proc/meminfo, MemAvailable.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, below, gib, ok, unread, warning
from gputune.checks._questions import reason
from gputune.checks._remedies import more, typed

MOMENTARY = True
LEAST, PLENTY_BYTES = 0.1, 16 << 30
LOOK = typed("ps aux --sort=-rss | head", note="shows which processes use it")


def check(facts: Facts, measurements: Measurements) -> Findings:
    """The worse of two: what is left to the host, and what is left below the limit of the process's group."""
    host = _left(facts, "free_bytes", facts.memory.total_bytes, "the host's memory", LOOK)
    group = _of_group(facts)
    if group is None or host.severity == "WARNING" or (group.severity == "OK" and host.severity == "UNKNOWN"):
        yield host
    else:
        yield group


def _of_group(facts: Facts) -> Finding | None:
    limit = facts.memory.limit_bytes
    if reason(facts, "memory.limit_bytes"):
        return unread(facts, "memory.limit_bytes", "the memory limit")
    if limit is None or below(facts.memory.total_bytes, limit):
        return None
    remedy = f"{more(facts, 'memory', facts.memory.limit_source)}; or use fewer DataLoader workers"
    return _left(facts, "limit_free_bytes", limit, "this group's limit", remedy)


def _left(facts: Facts, field: str, total: int | None, what: str, remedy: str) -> Finding:
    free: int | None = getattr(facts.memory, field)
    if free is None or total is None:
        return unread(facts, f"memory.{'total_bytes' if total is None else field}", f"what is left of {what}")
    message = f"{gib(free)} is left of {what} of {gib(total)}"
    return warning(message, remedy) if free < min(LEAST * total, PLENTY_BYTES) else ok(message)
