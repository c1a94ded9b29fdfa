"""What one rank has for loading data: CPUs, by affinity, cgroup quota and scheduler grant, which the local ranks share;
shared memory, and a folder for temporary files.
"""

import re
from dataclasses import dataclass

from . import cgroup, scheduler
from .files import Files
from .scheduler import Scheduler
from .unreadable import Unreadable


def budget(affinity: int, quota: float | None, grant: int | None, local_ranks: int) -> int:
    """The CPUs of one rank, at least 1. Local ranks share a quota, and the affinity unless each has its own grant."""
    bound = grant is not None and affinity <= grant
    limits = [affinity if bound else affinity / local_ranks]
    limits += [quota / local_ranks] if quota is not None else []
    limits += [grant] if grant is not None else []
    return max(1, int(min(limits)))


def rank_budget(files: Files, granted: Scheduler) -> int:
    """The number of CPUs of this process. A quota that cannot be read is ignored."""
    try:
        tightest = quota(files)
    except Unreadable:
        tightest = None
    limit = tightest[0] if tightest else None
    return budget(len(files.affinity()), limit, granted.cpus_of_rank, granted.local_ranks)


def quota(files: Files) -> tuple[float, str] | None:
    """The tightest CPU quota along the cgroup chain, in CPUs, and the file that sets it; None without a quota."""
    quotas: list[tuple[float, str]] = []
    for path, text in cgroup.values(files, "cpu", "cpu.cfs_quota_us", "cpu.max"):
        first = path.endswith("cpu.cfs_quota_us")  # the first version, which has a file for each number
        limit, _, period = text.strip().partition(" ")
        if limit == ("-1" if first else "max"):
            continue
        if first:
            period = files.read(path.removesuffix("cpu.cfs_quota_us") + "cpu.cfs_period_us").strip()
        numbers = [int(one) if re.fullmatch(r"[0-9]{1,18}", one) else 0 for one in (limit, period)]
        if not all(numbers):
            raise Unreadable(f"{path} reads {f'{limit} {period}'.strip()[:60]!r}")
        quotas.append((numbers[0] / numbers[1], path))
    return min(quotas, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """None where a value could not be read."""

    cpus: int | None = None
    shm_bytes: int | None = None
    """This rank's share of the free part of /dev/shm, through which workers pass their batches."""
    temporary: bool = True
    """Whether there is a folder for temporary files, without which workers hang."""


def room(files: Files) -> Room:
    granted = scheduler.read(files)
    try:
        shm_bytes = files.space_bytes("/dev/shm")[1] // granted.local_ranks
    except Unreadable:
        shm_bytes = None
    return Room(cpus=rank_budget(files, granted), shm_bytes=shm_bytes, temporary=temporary_folder())


def temporary_folder() -> bool:
    """Whether there is a folder for temporary files; without it DataLoader workers wait forever for batches."""
    import tempfile  # not where only CPUs are counted: it takes 5 ms

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True
