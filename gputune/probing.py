"""Probing: read the facts, run the benches in a worker process, ask for advice.

A bench that fails, hangs, is killed or runs out of memory becomes a Gap with its reason; a fresh worker goes on with the
next one, and the profile is still written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from gputune import advise, benches, facts
from gputune.benches import BUDGETS, Budget
from gputune.benches._worker import Worker, WorkerDied
from gputune.errors import MeasureError, UsageError
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.profile import Profile

FAILED_STARTS = 2
"""After as many workers in a row that never became ready, no more are started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a probe stands: bench `number` of `count`, what it does now, and the seconds that it may take."""

    number: int
    count: int
    bench: str
    doing: str
    seconds: float


def probe(
    *,
    device: str = "auto",
    budget: Budget = "standard",
    only: Sequence[str] = (),
    host: Host | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Profile:
    """Measure this machine and say what follows.

    `device` is auto, cpu, cuda or cuda:N; `only` names the benches to run (all that fit the budget by default). Raises
    UsageError for an unknown name, MeasureError when there is nothing to measure with or nothing could be measured.
    """
    _check_names(budget, only)
    found = facts.read(host or Host())
    where = _device(found, device)
    measurements, gaps = _measure(found, where, budget, _plan(where, budget, only), progress)
    if not measurements:
        reasons = "; ".join(dict.fromkeys(gap.reason for gap in gaps)) or "no bench fits this budget"
        raise MeasureError(f"nothing could be measured on {where}: {reasons}", "see: gputune check")
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return advise.advise(found, measurements, where, created=created, gaps=gaps)


def _check_names(budget: str, only: Sequence[str]) -> None:
    if budget not in BUDGETS:
        raise UsageError(f"--budget {budget}: there is no such budget", f"choose from {', '.join(BUDGETS)}")
    known = benches.names()
    for name in only:
        if name not in known:
            raise UsageError(f"--only {name}: there is no such bench", f"choose from {', '.join(known)}")


def _device(found: Facts, asked: str) -> str:
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


def _measure(
    found: Facts, device: str, budget: Budget, plan: Sequence[tuple[str, float]], progress: Callable[[Progress], None]
) -> tuple[list[Measurement], list[Gap]]:
    measurements: list[Measurement] = []
    gaps: list[Gap] = []
    with _Workers(device, found) as workers:
        for number, (name, seconds) in enumerate(plan, start=1):
            reason = benches.load(name).needs(found, device)
            if reason:
                gaps.append(Gap(fact=f"bench.{name}", reason=reason))
                continue
            try:
                for answer in workers.run(name, seconds, budget):
                    if "measurement" in answer:
                        measurements.append(_measurement(answer["measurement"]))
                    doing = answer.get("say", "")
                    if doing or "starting" in answer:
                        progress(Progress(number=number, count=len(plan), bench=name, doing=doing, seconds=seconds))
            except WorkerDied as died:
                gaps.append(Gap(fact=f"bench.{name}", reason=str(died)))
    return measurements, gaps


def _plan(device: str, budget: Budget, only: Sequence[str]) -> list[tuple[str, float]]:
    """The benches in order and their seconds. One that was asked for by name gets time also where the budget has none for it."""
    plan = []
    for name in benches.names():
        seconds = benches.seconds(name, device, budget)
        if name in only:
            seconds = seconds or benches.seconds(name, device, "standard")
        if seconds and (name in only or not only):
            plan.append((name, seconds))
    return plan


def _measurement(row: dict[str, Any]) -> Measurement:
    return Measurement(**{**row, "samples": tuple(row["samples"])})


class _Workers:
    """One worker at a time on one device, replaced when it dies."""

    def __init__(self, device: str, found: Facts) -> None:
        self._device = device
        self._facts = asdict(found)
        self._worker: Worker | None = None
        self._failed_starts = 0
        self._why = ""

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker:
            self._worker.close()

    def run(self, bench: str, seconds: float, budget: str) -> Iterator[dict[str, Any]]:
        yield {"starting": bench}
        worker = self._ready()
        try:
            # A bench keeps to its seconds by itself; twice that, and the start of its processes, is a hang.
            yield from worker.run(bench, seconds, budget, deadline_seconds=2 * seconds + 30)
        except WorkerDied:
            # Also after an ordinary exception: CUDA errors stick to a process, and memory may be gone.
            worker.kill()
            raise

    def _ready(self) -> Worker:
        if self._worker and self._worker.alive:
            return self._worker
        if self._worker:
            self._worker.close()
        if self._failed_starts >= FAILED_STARTS:
            raise WorkerDied(f"no worker could be started: {self._why}")
        self._worker = Worker(self._device, self._facts)
        try:
            self._worker.ready()
        except WorkerDied as died:
            self._failed_starts += 1
            self._why = str(died)
            self._worker.kill()
            raise
        self._failed_starts = 0
        return self._worker
