"""The CPUs that this process may really use: affinity, cgroup quota and the scheduler's grant, shared by local ranks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gputune.facts import cgroup
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
    quota: float | None = None
    """CPUs' worth of time that the tightest cgroup allows; None where there is no quota (or a gap says why)."""
    quota_source: str | None = None
    grant: int | None = None
    """CPUs that the scheduler granted to each task, where it says."""
    budget: int
    """Whole CPUs for this rank: the smallest of the above (a quota rounded down), divided by the local ranks."""


def read(host: Host, scheduler: Scheduler, gaps: Gaps) -> Cpu:
    logical, physical = host.cpu_counts()
    affinity = len(host.affinity())
    tightest = gaps.read("cpu.quota", lambda: quota(host))
    granted = scheduler.cpus_per_task
    return Cpu(
        model=gaps.read("cpu.model", lambda: _model(host)),
        logical_count=logical,
        physical_count=physical,
        affinity_count=affinity,
        quota=tightest[0] if tightest else None,
        quota_source=tightest[1] if tightest else None,
        grant=granted,
        budget=budget(affinity, tightest[0] if tightest else None, granted, scheduler.local_ranks),
    )


def budget(affinity: int, quota: float | None, grant: int | None, local_ranks: int) -> int:
    """Whole CPUs of one rank, at least 1. A quota is shared by the local ranks, and so is the affinity, unless the
    scheduler bound each task to no more than its own grant.
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


def _cpus(limit: str, period: str, path: str) -> float:
    try:
        cpus = int(limit) / int(period)
    except (ValueError, ArithmeticError):
        cpus = 0.0
    if cpus <= 0:
        raise Unreadable(f"{path} reads {f'{limit} {period}'.strip()[:60]!r}")
    return cpus


def _model(host: Host) -> str:
    text = host.read("/proc/cpuinfo")
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else host.machine()
