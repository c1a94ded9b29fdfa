"""What others used of this process's CPUs while it measured: a bench on a shared machine measures its neighbours too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from gputune.host import Host, Unreadable

_BUSY = (0, 1, 2, 5, 6, 7)
"""Of a line of /proc/stat: user, nice, system, irq, softirq, and steal, which is another guest's of the same host. Idle and
iowait are not; guest and guest_nice are counted in user and nice.

Source: Linux, proc_stat(5).
"""
_LEAST_SECONDS = 0.2
"""The kernel counts in steps of 0.01 s on each CPU, so that less than that tells nothing."""


class BusyCpus:
    """How many CPUs' worth of time others used, of the CPUs that this process may run on.

    For the process that starts the workers:

        busy = BusyCpus(host)
        busy.start()
        ...                     # a worker runs one bench
        others = busy.others()  # 1.9, or None where it cannot be told

    What this process and all that it started used is left out, so that whatever is to be measured must be started by it,
    and call `others` before a worker is ended: one that was killed may take the times of its own children along.
    """

    def __init__(self, host: Host, own: Callable[[], float] | None = None) -> None:
        self._host = host
        self._own = own or own_seconds
        self._since: Reading | None = None

    def start(self) -> None:
        self._since = self._read()

    def others(self) -> float | None:
        """Since `start`, in CPUs."""
        now = self._read()
        return between(self._since, now) if self._since and now else None

    def _read(self) -> Reading | None:
        try:
            ticks = busy_ticks(self._host.read("/proc/stat"), self._host.affinity())
        except Unreadable:
            return None
        return Reading(at=time.monotonic(), busy=ticks / os.sysconf("SC_CLK_TCK"), own=self._own())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Seconds: of the clock, of our CPUs by anybody, and of any CPU by us."""

    at: float
    busy: float
    own: float


def between(before: Reading, after: Reading) -> float | None:
    """What others used between two readings, in CPUs; None where that was too short, or the counts contradict each other, as
    in a sandbox whose /proc/stat stands still.
    """
    seconds, own = after.at - before.at, after.own - before.own
    if seconds < _LEAST_SECONDS or own < 0:
        return None
    others = (after.busy - before.busy - own) / seconds
    if others < -max(0.1, 0.1 * own / seconds):
        return None
    return round(max(0.0, others), 2)


def busy_ticks(stat: str, cpus: Collection[int]) -> int:
    """The ticks in which `cpus` did something, from the text of /proc/stat. Raises Unreadable where it lacks one of them."""
    lines = (line.split() for line in stat.splitlines() if line.startswith("cpu"))
    found = {name.removeprefix("cpu"): counts for name, *counts in lines}
    try:
        return sum(int(found[str(cpu)][column]) for cpu in cpus for column in _BUSY)
    except (KeyError, IndexError, ValueError):
        raise Unreadable("/proc/stat does not list the CPUs of this process") from None


def own_seconds() -> float:
    """CPU seconds of this process and all its descendants, those that ended and were waited for among them."""
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
