"""The CPUs that this process may use: affinity, cgroup quota and scheduler's grant, shared by the local ranks."""

import re
from dataclasses import dataclass

from gputune.facts import cpu_list
from gputune.facts.cpu_list import model
from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable
from gputune.resources.room import budget, quota
from gputune.resources.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    model: str | None = None
    logical_count: int
    """CPUs online on the host."""
    physical_count: int | None = None
    affinity_count: int
    affinity: str | None = None
    """The CPUs that this process may run on, in the kernel's list format: `0-15,64-79`."""
    quota: float | None = None
    """CPU seconds per second that the tightest cgroup allows; None without a quota, or where a gap says why."""
    quota_source: str | None = None
    quota_periods: int | None = None
    """Enforcement periods (usually 0.1 s) in which the group ran; None without a quota, or where a gap says why."""
    throttled_periods: int | None = None
    """Periods in which the kernel stopped the group because its quota was used up; None as for `quota_periods`."""
    grant: int | None = None
    """The number of CPUs that the scheduler granted to this rank; None if it does not say."""
    others: float | None = None
    """How many of the affinity's CPUs others used while the facts were read; None where that is unknown."""
    stolen: float | None = None
    """How many of these other guests of the host used; None as for `others`."""
    budget: int
    """Whole CPUs for this rank: the smallest of affinity, quota (rounded down) and grant, shared by the local ranks."""


def read(host: Host, scheduler: Scheduler, gaps: Gaps) -> Cpu:
    logical, physical = host.cpu_counts()
    affinity = host.affinity()
    limit, source = gaps.read("cpu.quota", lambda: quota(host)) or (None, None)
    throttled = gaps.read("cpu.throttled_periods", lambda: _periods(host, source)) if source else None
    periods, stopped = throttled or (None, None)
    return Cpu(
        model=gaps.read("cpu.model", lambda: model(host)),
        logical_count=logical,
        physical_count=physical,
        affinity_count=len(affinity),
        affinity=cpu_list.text(affinity),
        quota=limit,
        quota_source=source,
        quota_periods=periods,
        throttled_periods=stopped,
        grant=scheduler.cpus_of_rank,
        budget=budget(len(affinity), limit, scheduler.cpus_of_rank, scheduler.local_ranks),
    )


def _periods(host: Host, quota_file: str) -> tuple[int, int]:
    path = quota_file.rpartition("/")[0] + "/cpu.stat"
    counts = dict(re.findall(r"^(nr_periods|nr_throttled) ([0-9]{1,20})$", host.read(path), re.MULTILINE))
    if len(counts) < 2:
        raise Unreadable(f"{path} counts no throttled periods")
    return int(counts["nr_periods"]), int(counts["nr_throttled"])
