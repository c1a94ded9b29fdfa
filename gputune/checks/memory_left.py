"""Is there memory left before the kernel kills a process?

A container's limit is not the host's memory, which is what most tools show. Where it is spent the kernel kills a process
of the group: exit code 137, a DataLoader worker "killed by signal: Killed". /dev/shm counts too. The file cache does not:
it gives way.

Source: Linux, cgroups, memory controller; /proc/meminfo, MemAvailable.
"""

from gputune.checks._answers import gib, ok, unread, warning
from gputune.checks._common import Facts, Finding, Findings, Measurements, reason

MOMENTARY = True
LEAST, PLENTY_BYTES = 0.1, 16 << 30
RAISE = "docker run --memory=N, Kubernetes resources.limits.memory: N, Slurm --mem=N; or use fewer DataLoader workers"
LOOK = "ps aux --sort=-rss | head shows who has it"


def check(facts: Facts, measurements: Measurements) -> Findings:
    memory = facts.memory
    host = _of(facts, "free_bytes", memory.total_bytes, "the host's memory", LOOK)
    if reason(facts, "memory.limit_bytes"):
        yield unread(facts, "memory.limit_bytes", "the memory limit")
    elif (
        memory.limit_bytes is None
        or memory.limit_bytes > (memory.total_bytes or memory.limit_bytes)
        or host.severity == "WARNING"
    ):
        yield host
    else:
        yield _of(facts, "limit_free_bytes", memory.limit_bytes, "this group's limit", RAISE)


def _of(facts: Facts, field: str, total: int | None, what: str, remedy: str) -> Finding:
    free: int | None = getattr(facts.memory, field)
    if free is None or total is None:
        return unread(facts, f"memory.{field}", f"what is left of {what}")
    message = f"{gib(free)} is left of {what} of {gib(total)}"
    return warning(message, remedy) if free < min(LEAST * total, PLENTY_BYTES) else ok(message)
