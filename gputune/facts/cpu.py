"""The CPUs that this process may really use: affinity, cgroup quota and the scheduler's grant, shared by local ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.facts import cpu_list
from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable
from gputune.resources.cpus import budget, quota
from gputune.resources.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    model: str | None = None
    logical_count: int
    """Online on the host."""
    physical_count: int | None = None
    affinity_count: int
    """What this process may run on."""
    affinity: str | None = None
    """The same by number, as the kernel writes lists: `0-15,64-79`."""
    quota: float | None = None
    """CPUs' worth of time that the tightest cgroup allows; None where there is no quota (or a gap says why)."""
    quota_source: str | None = None
    quota_periods: int | None = None
    """The quota's periods (0.1 s, mostly) in which something ran; None without a quota, or where a gap says why."""
    throttled_periods: int | None = None
    """Those in which the kernel stopped the group, its quota being spent; None likewise."""
    grant: int | None = None
    """CPUs that the scheduler granted to this rank, where it says."""
    budget: int
    """Whole CPUs for this rank: the smallest of the above (a quota rounded down), divided by the local ranks."""


def read(host: Host, scheduler: Scheduler, gaps: Gaps) -> Cpu:
    logical, physical = host.cpu_counts()
    cpus = host.affinity()
    affinity = len(cpus)
    tightest = gaps.read("cpu.quota", lambda: quota(host))
    throttled = gaps.read("cpu.throttled_periods", lambda: _periods(host, tightest[1])) if tightest else None
    granted = scheduler.cpus_of_rank
    return Cpu(
        model=gaps.read("cpu.model", lambda: model(host)),
        logical_count=logical,
        physical_count=physical,
        affinity_count=affinity,
        affinity=cpu_list.text(cpus),
        quota=tightest[0] if tightest else None,
        quota_source=tightest[1] if tightest else None,
        quota_periods=throttled[0] if throttled else None,
        throttled_periods=throttled[1] if throttled else None,
        grant=granted,
        budget=budget(affinity, tightest[0] if tightest else None, granted, scheduler.local_ranks),
    )


def model(host: Host) -> str:
    """The processor's name, or where it has none the machine's kind."""
    text = host.read("/proc/cpuinfo")
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else host.machine()


def _periods(host: Host, quota_file: str) -> tuple[int, int]:
    path = quota_file.rpartition("/")[0] + "/cpu.stat"
    counts = dict(re.findall(r"^(nr_periods|nr_throttled) ([0-9]{1,20})$", host.read(path), re.MULTILINE))
    if len(counts) < 2:
        raise Unreadable(f"{path} counts no throttled periods")
    return int(counts["nr_periods"]), int(counts["nr_throttled"])
