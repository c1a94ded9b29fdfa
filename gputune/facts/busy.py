"""CPU time that others use of our CPUs: on a shared machine a measurement measures its neighbours too."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

from gputune.facts.cpu import Cpu
from gputune.host import Host, Unreadable

_BUSY = (0, 1, 2, 5, 6, 7)
"""The columns of a line of /proc/stat that count as busy: user, nice, system, irq, softirq, and steal, which other
guests of the host used. Idle and iowait do not; guest and guest_nice are in user and nice (Linux, proc_stat(5))."""
_STOLEN = (7,)
LEAST_SECONDS = 0.2
"""The kernel counts in steps of 0.01 s on each CPU, so a shorter interval says nothing."""

CPUS_OF_A_GPU = 2
SLACK_CPUS, SLACK_SHARE = 0.25, 0.02
"""The CPUs that others may use of those that are needed, and the share of them, whichever is more. While machines were
idle, others used up to 0.05 of 2 CPUs and 0.04 of 16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at the clock and the CPU times, all in seconds."""

    at: float
    busy: float
    """The time that our CPUs were busy for any process, or taken by another guest of the host."""
    stolen: float = 0.0
    """The part of it that other guests took."""
    own: float
    """The CPU time of this process and its descendants."""


def read(host: Host) -> Reading | None:
    """None where /proc/stat does not count our CPUs. Read it while the bench process and its children live."""
    try:
        stat, cpus, ticks = host.read("/proc/stat"), host.affinity(), os.sysconf("SC_CLK_TCK")
        busy, stolen = (ticks_of(stat, cpus, columns) / ticks for columns in (_BUSY, _STOLEN))
    except Unreadable:
        return None
    return Reading(at=host.monotonic(), busy=busy, stolen=stolen, own=host.own_cpu_seconds())


def conditions(before: Reading | None, after: Reading | None) -> dict[str, float]:
    """Return `other_cpus`, and `stolen_cpus` where there are any, between two readings; nothing where it is unknown."""
    others = used_by_others(before, after)
    if others is None or before is None or after is None:
        return {}
    stolen = round((after.stolen - before.stolen) / (after.at - before.at), 2)
    return {"other_cpus": others} | ({"stolen_cpus": stolen} if stolen > 0 else {})


def used_by_others(before: Reading | None, after: Reading | None) -> float | None:
    """How many CPUs others used between two readings; None if unknown, as in a sandbox whose counts never change."""
    if before is None or after is None:
        return None
    seconds, own = after.at - before.at, after.own - before.own
    if seconds < LEAST_SECONDS or own < 0:
        return None
    others = (after.busy - before.busy - own) / seconds
    if others < -max(0.1, 0.1 * own / seconds):
        return None
    return round(max(0.0, others), 2)


def watched(host: Host, seconds: float) -> float | None:
    """Return how many CPUs' worth of time others use, watched for so long; None at once where that cannot be read."""
    before = read(host)
    if before is None:
        return None
    time.sleep(seconds)
    return used_by_others(before, read(host))


def ticks_of(stat: str, cpus: Collection[int], columns: Collection[int] = _BUSY) -> int:
    """The ticks of `cpus` in /proc/stat, by default the busy ones. Raises Unreadable if a CPU or column is missing."""
    lines = (line.split() for line in stat.splitlines() if line.startswith("cpu"))
    counts_of = {name.removeprefix("cpu"): counts for name, *counts in lines}
    try:
        return sum(int(counts_of[str(cpu)][column]) for cpu in cpus for column in columns)
    except (KeyError, IndexError, ValueError):
        raise Unreadable("/proc/stat does not list the CPUs of this process") from None


def is_busy(cpu: Cpu, others: float, *, on_gpu: bool = False) -> bool:
    """Whether others leave fewer CPUs than needed: the whole budget, or for a GPU two, one for the backward pass."""
    needed = min(CPUS_OF_A_GPU, cpu.budget) if on_gpu else cpu.budget
    return cpu.affinity_count - others < needed - max(SLACK_CPUS, SLACK_SHARE * needed)
