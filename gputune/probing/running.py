"""Running benches on one device, one after the other, and saying what became of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median_low

from gputune import benches
from gputune.bench_process.process import BenchFailed, measurement_of
from gputune.bench_process.restarting import RestartingProcess
from gputune.facts import Facts, memory
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.probing.busy import BusyCpus
from gputune.probing.plan import Job
from gputune.probing.request import Progress

OF_A_BENCH: dict[str, Callable[[list[float]], float]] = {
    "pcie_generation": max,
    "gpu_processes": median_low,  # NVML lists a process that has ended for a moment more
    "other_sm_percent": max,
}
"""Conditions that are kept once a bench and not in each of its rows, and what of the rows' values is kept."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a probe measures."""

    facts: Facts
    device: str
    busy: BusyCpus
    host: Host = field(default_factory=Host)


@dataclass(slots=True, kw_only=True)
class Lane:
    """One device, the worker that measures on it, and what came of it."""

    workers: RestartingProcess
    place: Place
    measurements: list[Measurement] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @classmethod
    def on(cls, device: str, workers: RestartingProcess, found: Facts, host: Host) -> Lane:
        workers.measure_on(device, asdict(found))
        return cls(workers=workers, place=Place(found, device, BusyCpus(host), host))

    def do(self, jobs: Sequence[Job], progress: Callable[[Progress], None]) -> None:
        found, lacking = measure(self.workers, self.place, jobs, progress)
        self.measurements += found
        self.gaps += lacking


KILLED = re.compile(r"killed by SIGKILL|exited unexpectedly")
"""What a worker, or torch of a DataLoader's worker, says of a process that something else has ended."""


@dataclass(frozen=True, slots=True)
class _OomKiller:
    """The kernel's, since the count of those that it ended here was `before`."""

    place: Place
    before: int | None

    @classmethod
    def watched(cls, place: Place) -> _OomKiller:
        return cls(place, memory.oom_kills(place.host))

    def told(self, reason: str) -> str:
        """The reason for a Gap; one that tells of a process killed names the memory where it was killed for that."""
        if not KILLED.search(reason):
            return reason
        now = memory.oom_kills(self.place.host)
        if self.before is None or now is None:
            return f"{reason}, as the kernel does where memory runs out"
        if now <= self.before:
            return reason
        limit, total = self.place.facts.memory.limit_bytes, self.place.facts.memory.total_bytes
        there = f"the limit here is {limit >> 20} MiB" if limit else f"the host has {(total or 0) >> 20} MiB"
        return f"{reason}; the kernel's OOM killer did it, since the memory ran out: {there}"


def measure(
    workers: RestartingProcess, place: Place, jobs: Sequence[Job], progress: Callable[[Progress], None]
) -> tuple[list[Measurement], list[Gap]]:
    measurements: list[Measurement] = []
    gaps: list[Gap] = []
    for number, job in enumerate(jobs, start=1):
        bench = benches.load(job.bench)
        reason = bench.needs(place.facts, place.device)
        if reason:
            gaps.append(Gap(fact=f"bench.{job.bench}", reason=reason))
            continue
        begun = Progress(number=number, count=len(jobs), bench=job.bench, doing="", seconds=job.seconds)
        found, lacking = _run(workers, place, job, begun, progress)
        measurements += found
        gaps += lacking
        if getattr(bench, "USER_CODE", False):
            workers.kill()
    return measurements, gaps


def _run(
    workers: RestartingProcess, place: Place, job: Job, begun: Progress, progress: Callable[[Progress], None]
) -> tuple[list[Measurement], list[Gap]]:
    found: list[Measurement] = []
    gaps: list[Gap] = []
    place.busy.start()
    killer = _OomKiller.watched(place)
    others: float | None = None
    try:
        for answer in workers.run(job.request):
            if "measurement" in answer:
                found.append(measurement_of(answer["measurement"]))
            if "gap" in answer:
                gaps.append(_gap(answer["gap"], killer))
            doing = answer.get("say", "")
            if doing or "starting" in answer:
                progress(replace(begun, doing=doing))
        others = place.busy.others()
    except BenchFailed as died:  # and with it the count of what its own children used
        gaps.append(Gap(fact=f"bench.{job.bench}", reason=killer.told(str(died))))
    return _condensed(found, others), gaps


def _condensed(rows: list[Measurement], cpus: float | None) -> list[Measurement]:
    """The rows of one bench, the first of which tells what held for all of it: `OF_A_BENCH`, and what others used of the CPUs."""
    if not rows:
        return rows
    seen = {name: [row.conditions[name] for row in rows if name in row.conditions] for name in OF_A_BENCH}
    of_all = {name: OF_A_BENCH[name](values) for name, values in seen.items() if values}
    own = [{name: value for name, value in row.conditions.items() if name not in OF_A_BENCH} for row in rows]
    own[0] |= of_all | ({} if cpus is None else {"other_cpus": cpus})
    return [replace(row, conditions=conditions) for row, conditions in zip(rows, own, strict=True)]


def _gap(told: dict[str, str], killer: _OomKiller) -> Gap:
    return Gap(fact=told["fact"], reason=killer.told(told["reason"]))
