"""The CPUs that this process may really use: affinity, cgroup quota and the scheduler's grant, shared by local ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.facts import cgroup, cpu_list
from gputune.facts.gap import Gaps
from gputune.facts.scheduler import Scheduler
from gputune.host import Host, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    __pydantic_config__ = {"strict": True, "extra": "forbid"}

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


def rank_budget(host: Host, scheduler: Scheduler, gaps: Gaps) -> int:
    """The budget alone, in a few files."""
    tightest = gaps.read("cpu.quota", lambda: quota(host))
    limit = tightest[0] if tightest else None
    return budget(len(host.affinity()), limit, scheduler.cpus_of_rank, scheduler.local_ranks)


def model(host: Host) -> str:
    """The processor's name, or where it has none the machine's kind."""
    text = host.read("/proc/cpuinfo")
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else host.machine()


def budget(affinity: int, quota: float | None, grant: int | None, local_ranks: int) -> int:
    """Whole CPUs of one rank, at least 1. A quota is shared by the local ranks, and so is the affinity, unless the
    scheduler bound each rank to no more than its own grant.
    """
    bound = grant is not None and affinity <= grant
    limits = [affinity if bound else affinity / local_ranks]
    limits += [quota / local_ranks] if quota is not None else []
    limits += [grant] if grant is not None else []
    return max(1, int(min(limits)))


def quota(host: Host) -> tuple[float, str] | None:
    """The tightest CPU quota along the cgroup chain, in CPUs, and the file that sets it; None where none does."""
    found: list[tuple[float, str]] = []
    for path, text in cgroup.values(host, "cpu", "cpu.cfs_quota_us", "cpu.max"):
        limit, _, period = text.strip().partition(" ")
        if limit in ("max", "-1"):
            continue
        if path.endswith("cpu.cfs_quota_us"):
            period = host.read(path.removesuffix("cpu.cfs_quota_us") + "cpu.cfs_period_us")
        found.append((_cpus(limit, period, path), path))
    return min(found, default=None)


def _periods(host: Host, quota_file: str) -> tuple[int, int]:
    path = quota_file.rpartition("/")[0] + "/cpu.stat"
    counts = dict(re.findall(r"^(nr_periods|nr_throttled) ([0-9]{1,20})$", host.read(path), re.MULTILINE))
    if len(counts) < 2:
        raise Unreadable(f"{path} counts no throttled periods")
    return int(counts["nr_periods"]), int(counts["nr_throttled"])


def _cpus(limit: str, period: str, path: str) -> float:
    try:
        cpus = int(limit) / int(period)
    except (ValueError, ArithmeticError):
        cpus = 0.0
    if cpus <= 0:
        raise Unreadable(f"{path} reads {f'{limit} {period}'.strip()[:60]!r}")
    return cpus
