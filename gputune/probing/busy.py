"""CPU time that others used of our CPUs during a bench: on a shared machine it measures its neighbours too."""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

from gputune.host import Host, Unreadable

_BUSY = (0, 1, 2, 5, 6, 7)
"""The columns of a line of /proc/stat that count as busy: user, nice, system, irq, softirq, and steal, which other
guests of the host used. Idle and iowait do not; guest and guest_nice are contained in user and nice.

Source: Linux, proc_stat(5).
"""
_STOLEN = (7,)
_LEAST_SECONDS = 0.2
"""The kernel counts in steps of 0.01 s on each CPU, so a shorter interval says nothing."""


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
    return Reading(at=time.monotonic(), busy=busy, stolen=stolen, own=own_seconds())


def conditions(before: Reading | None, after: Reading | None) -> dict[str, float]:
    """Return `other_cpus`, and `stolen_cpus` where there are any, between two readings; nothing where it is unknown."""
    others = used_by_others(before, after)
    if others is None or before is None or after is None:
        return {}
    stolen = round((after.stolen - before.stolen) / (after.at - before.at), 2)
    return {"other_cpus": others} | ({"stolen_cpus": stolen} if stolen > 0 else {})


def used_by_others(before: Reading | None, after: Reading | None) -> float | None:
    """Return how many CPUs' worth of time others used between two readings; None where one is missing, the interval
    was too short, or the counts contradict each other, as in a sandbox whose /proc/stat never changes.
    """
    if before is None or after is None:
        return None
    seconds, own = after.at - before.at, after.own - before.own
    if seconds < _LEAST_SECONDS or own < 0:
        return None
    others = (after.busy - before.busy - own) / seconds
    if others < -max(0.1, 0.1 * own / seconds):
        return None
    return round(max(0.0, others), 2)


def ticks_of(stat: str, cpus: Collection[int], columns: Collection[int] = _BUSY) -> int:
    """Return the ticks that these columns count for `cpus`, by default those in which they were busy, from the text of
    /proc/stat. Raises Unreadable if one is missing.
    """
    lines = (line.split() for line in stat.splitlines() if line.startswith("cpu"))
    counts_of = {name.removeprefix("cpu"): counts for name, *counts in lines}
    try:
        return sum(int(counts_of[str(cpu)][column]) for cpu in cpus for column in columns)
    except (KeyError, IndexError, ValueError):
        raise Unreadable("/proc/stat does not list the CPUs of this process") from None


def own_seconds() -> float:
    """Return the CPU seconds of this process and all its descendants, also those that have been waited for."""
    import psutil

    this = psutil.Process()
    total = 0.0
    for process in [this, *this.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has just ended
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
