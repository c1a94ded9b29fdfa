"""Is there enough memory left to keep the kernel from killing a process?

A container's limit is lower than the host's memory, which is what most tools show. When it is used up, the kernel kills
a process of the group: exit code 137, or a DataLoader worker "killed by signal: Killed". /dev/shm counts towards the
limit; the file cache does not, because the kernel drops it first.

Source: Linux, cgroups, memory controller; /proc/meminfo, MemAvailable.
"""

from gputune.checks._answers import Facts, Finding, Findings, Measurements, below, gib, ok, unread, warning
from gputune.checks._questions import reason

MOMENTARY = True
LEAST, PLENTY_BYTES = 0.1, 16 << 30
RAISE = "docker run --memory=N, Kubernetes resources.limits.memory: N, Slurm --mem=N; or use fewer DataLoader workers"
LOOK = "ps aux --sort=-rss | head shows which processes use it"


def check(facts: Facts, measurements: Measurements) -> Findings:
    memory = facts.memory
    host = _left(facts, "free_bytes", memory.total_bytes, "the host's memory", LOOK)
    if reason(facts, "memory.limit_bytes"):
        yield unread(facts, "memory.limit_bytes", "the memory limit")
    elif memory.limit_bytes is None or below(memory.total_bytes, memory.limit_bytes) or host.severity == "WARNING":
        yield host
    else:
        yield _left(facts, "limit_free_bytes", memory.limit_bytes, "this group's limit", RAISE)


def _left(facts: Facts, field: str, total: int | None, what: str, remedy: str) -> Finding:
    free: int | None = getattr(facts.memory, field)
    if free is None or total is None:
        return unread(facts, f"memory.{field}", f"what is left of {what}")
    message = f"{gib(free)} is left of {what} of {gib(total)}"
    return warning(message, remedy) if free < min(LEAST * total, PLENTY_BYTES) else ok(message)
