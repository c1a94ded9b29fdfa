"""Probing: read the facts, run the benches in a worker process, ask for advice.

A bench that fails, hangs, is killed or runs out of memory becomes a Gap with its reason; a fresh worker goes on with the
next one, and the profile is still written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from statistics import median_low
from typing import Any

from gputune import advise, benches, facts
from gputune.benches import BUDGETS, Budget, MatmulShape, UserDataset
from gputune.benches._busy import BusyCpus
from gputune.benches._worker import WorkerDied, measurement_of
from gputune.benches._workers import Workers
from gputune.errors import MeasureError, UsageError
from gputune.facts import Facts, memory
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.profile import Profile

OF_A_BENCH: dict[str, Callable[[list[float]], float]] = {
    "pcie_generation": max,
    "gpu_processes": median_low,  # NVML lists a process that has ended for a moment more
    "other_sm_percent": max,
}
"""Conditions that are kept once a bench and not in each of its rows, and what of the rows' values is kept."""


OPTIONS = {"shapes": "FILE", "dataset": "FILE.py:CALLABLE"}
"""What a user may name, which its bench then measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a probe stands: bench `number` of `count`, what it does now, and the seconds that it may take."""

    number: int
    count: int
    bench: str
    doing: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to probe: `device` is auto, cpu, cuda or cuda:N; `only` names the benches to run (all that fit the budget by
    default); `shapes` are matmuls of the user's own, `dataset` what is to be loaded.
    """

    device: str = "auto"
    budget: Budget = "standard"
    only: Sequence[str] = ()
    shapes: Sequence[MatmulShape] = ()
    dataset: Sequence[UserDataset] = ()

    @property
    def options(self) -> dict[str, Any]:
        """What the user named, as it travels to the benches that ask for it."""
        named: dict[str, Sequence[Any]] = {option: getattr(self, option) for option in OPTIONS}
        return {option: [asdict(one) for one in asked] for option, asked in named.items() if asked}


def probe(
    request: Request,
    *,
    host: Host | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Profile:
    """Measure this machine and say what follows.

    Raises UsageError for an unknown name, MeasureError when there is nothing to measure with or nothing could be measured.
    """
    _check_names(request)
    with Workers() as workers:
        found = facts.read(host or Host())
        where = device_of(found, request.device)
        workers.measure_on(where, asdict(found))
        busy = BusyCpus(host or Host())
        measurements, gaps = _measure(
            workers, _Place(found, where, busy, host or Host()), _plan(where, request), progress
        )
    if not measurements:
        reasons = "; ".join(dict.fromkeys(gap.reason for gap in gaps)) or "no bench fits this budget"
        raise MeasureError(f"nothing could be measured on {where}: {reasons}", "see: gputune check")
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return advise.advise(found, measurements, where, created=created, gaps=gaps)


def _check_names(request: Request) -> None:
    if request.budget not in BUDGETS:
        raise UsageError(f"--budget {request.budget}: there is no such budget", f"choose from {', '.join(BUDGETS)}")
    known = benches.names()
    for name in request.only:
        if name not in known:
            raise UsageError(f"--only {name}: there is no such bench", f"choose from {', '.join(known)}")
        option = getattr(benches.load(name), "OPTION", None)
        if option is None or option in request.options:
            continue
        if option not in OPTIONS:
            raise UsageError(f"--only {name}: is no part of a probe", f"use gputune {name.replace('_', '-')}")
        raise UsageError(f"--only {name}: measures what --{option} names", f"add --{option} {OPTIONS[option]}")


def device_of(found: Facts, asked: str) -> str:
    """The device that was asked for (auto, cpu, cuda or cuda:N) as torch names it. Raises UsageError; MeasureError where it is not
    there.
    """
    kind, _, index = asked.partition(":")
    visible = sorted(gpu.torch_index for gpu in found.gpus if gpu.torch_index is not None)
    if asked == "auto":
        return f"cuda:{visible[0]}" if visible else "cpu"
    if asked == "cpu":
        return "cpu"
    if kind != "cuda" or not ((index.isascii() and index.isdigit()) or asked == "cuda"):
        raise UsageError(f"--device {asked}: there is no such device", "choose from auto, cpu, cuda, cuda:N")
    if int(index or 0) not in visible:
        seen = f"torch sees {len(visible)} GPU{'' if len(visible) == 1 else 's'}" if visible else "torch sees no GPU"
        raise MeasureError(f"--device {asked}: {seen}", "see: gputune check, or measure the CPU with --device cpu")
    return f"cuda:{int(index or 0)}"


@dataclass(frozen=True, slots=True)
class _Job:
    """One bench of the plan, and what its Context is to hold."""

    bench: str
    seconds: float
    budget: Budget
    options: Mapping[str, Any]

    @property
    def request(self) -> dict[str, Any]:
        return {"bench": self.bench, "seconds": self.seconds, "budget": self.budget, **self.options}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a probe measures."""

    facts: Facts
    device: str
    busy: BusyCpus
    host: Host = field(default_factory=Host)


KILLED = re.compile(r"killed by SIGKILL|exited unexpectedly")
"""What a worker, or torch of a DataLoader's worker, says of a process that something else has ended."""


@dataclass(frozen=True, slots=True)
class _OomKiller:
    """The kernel's, since the count of those that it ended here was `before`."""

    place: _Place
    before: int | None

    @classmethod
    def watched(cls, place: _Place) -> _OomKiller:
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


def _measure(
    workers: Workers, place: _Place, jobs: Sequence[_Job], progress: Callable[[Progress], None]
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
    workers: Workers, place: _Place, job: _Job, begun: Progress, progress: Callable[[Progress], None]
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
    except WorkerDied as died:  # and with it the count of what its own children used
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


def _plan(device: str, request: Request) -> list[_Job]:
    """The benches in order and their seconds. One that was asked for by name gets time also where the budget has none for it;
    one of what only the user can name is there when it was named, with its seconds for each.
    """
    plan = []
    for name in benches.names():
        option = getattr(benches.load(name), "OPTION", None)
        if option not in (None, *request.options):
            continue
        count = len(request.options[option]) if option else 1
        seconds = count * _seconds(name, device, request.budget, wanted=name in request.only)
        if name in request.only or (seconds and not request.only):
            plan.append(_Job(name, seconds, request.budget, request.options))
    return plan


def _seconds(name: str, device: str, budget: Budget, *, wanted: bool) -> float:
    from_here = BUDGETS[BUDGETS.index(budget) :] if wanted else (budget,)
    return next((seconds for one in from_here if (seconds := benches.seconds(name, device, one))), 0.0)


def _gap(told: dict[str, str], killer: _OomKiller) -> Gap:
    return Gap(fact=told["fact"], reason=killer.told(told["reason"]))
