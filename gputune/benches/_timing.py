"""Timing arms against each other in one process: calibrated blocks of work, in the order and to the end that `rounds`
gives.

What is timed is warm: caches hold what fits in them, and the first round is not kept. Also how many threads torch
computes with meanwhile, on CPUs that others may use.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gputune.bench_process import Context
from gputune.bench_process.telemetry import summary
from gputune.facts import busy
from gputune.facts.cpu import Cpu
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import LOOKS, Measurement, rounded
from gputune.search import rounds
from gputune.search.rounds import Rounds

Params = dict[str, str | int | float | bool]

BLOCK_SECONDS = 0.05
SHORTEST_BLOCK_SECONDS = 0.015
RACE_ROUNDS = 4
LOOK_SECONDS = 0.25
"""How long is watched how many CPUs others use."""


@dataclass(kw_only=True, eq=False)
class Arm(rounds.Arm):
    """One setting under test. `run` does `work` units of work once, and a sample is work per second."""

    params: Params
    run: Callable[[], Any]
    work: float
    before: Callable[[], None] = lambda: None
    """Called before each block, untimed: sets flags, drains queues."""
    after: Callable[[], None] = lambda: None
    repeats: int = 1
    seconds: float = 0.0
    """How long one run takes, as calibrated."""
    conditions: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Metric:
    bench: str
    unit: str
    name: str = "throughput"

    def row(self, context: Context, samples: Iterable[float], params: Params, **conditions: float) -> Measurement:
        return Measurement(
            bench=self.bench,
            metric=self.name,
            unit=self.unit,
            samples=tuple(map(rounded, samples)),
            params=params,
            device=context.device,
            conditions=conditions,
        )

    def row_of(self, context: Context, arm: Arm) -> Measurement:
        return self.row(context, arm.samples, arm.params, **summary(arm.conditions))


T = TypeVar("T")


def shared_out(parts: Sequence[T], seconds: float, weight: Callable[[T], float]) -> Iterator[tuple[T, float]]:
    """Each part in turn and its share, by weight, of the seconds that the parts before it left; 0 if none are left."""
    end, weights = time.monotonic() + seconds, sum(map(weight, parts))
    for part in parts:
        yield part, max(0.0, end - time.monotonic()) * weight(part) / weights
        weights -= weight(part)


def interleave(
    context: Context, arms: Sequence[Arm], seconds: float, metric: Metric, block_seconds: float = BLOCK_SECONDS
) -> list[Measurement]:
    """Measure all arms in turn for about `seconds` or until they are decided: a row for each, none if no round fits."""
    deadline = time.monotonic() + seconds
    for arm in arms:
        if time.monotonic() > deadline:
            return []
        _calibrate(context, arm, block_seconds / 2)
    left = deadline - time.monotonic()
    length = max(SHORTEST_BLOCK_SECONDS, min(block_seconds, left / (len(arms) * (LOOKS[0] + 2))))
    for arm in arms:
        arm.repeats = max(1, round(length / arm.seconds))
    if left < 2 * sum(arm.repeats * arm.seconds for arm in arms):  # the warm-up round, and one that is kept
        return []
    for arm in arms:  # the warm-up round
        rate(context, arm)
        arm.conditions.clear()
    if deadline - time.monotonic() < sum(arm.repeats * arm.seconds for arm in arms):
        return []
    comparison = Rounds(arms=list(arms), deadline=deadline)
    while upcoming := comparison.next(time.monotonic()):
        comparison.push(rate(context, upcoming))
    return [metric.row_of(context, arm) for arm in arms if arm.samples]


def race(arms: Sequence[Arm], seconds: float) -> None:
    """A few rounds, as many as can tell apart what lies far apart; those that stay in go on to `in_turn`."""
    _run(Rounds(arms=list(arms), deadline=time.monotonic() + seconds, reserve=0, most=RACE_ROUNDS))


def in_turn(arms: Sequence[Arm], seconds: float, at_most: float | None = None) -> None:
    """Take whole rounds of samples that `run` returns. It goes on for `at_most` until there are `FEWEST_PAIRS`."""
    now = time.monotonic()
    _run(Rounds(arms=list(arms), deadline=now + seconds, latest=now + (at_most or 0.0)))


def _run(comparison: Rounds[Arm]) -> None:
    while arm := comparison.next(time.monotonic()):
        comparison.push(float(arm.run()))


def warm_up(context: Context, run: Callable[[], Any], seconds: float) -> None:
    """Load the device for a while, so that its clock and power are those of work and not of idling."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time_of(context, run, 10)


def time_of(context: Context, run: Callable[[], Any], repeats: int) -> float:
    """Seconds that `repeats` runs take: by CUDA events on a GPU, by the wall clock on a CPU."""
    return time_and_sample(context, run, repeats)[0]


def time_and_sample(context: Context, run: Callable[[], Any], repeats: int) -> tuple[float, dict[str, float]]:
    kept = None  # the last output stays alive, so that no allocation is saved that a user would have
    if not context.cuda:
        start = time.perf_counter()
        for _ in range(repeats):
            kept = run()
        del kept
        return time.perf_counter() - start, {}
    import torch

    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(repeats):
        kept = run()
    last.record()
    sample = context.telemetry.sample()  # while the queued work is running
    last.synchronize()
    del kept
    return first.elapsed_time(last) / 1000, sample


def _calibrate(context: Context, arm: Arm, enough: float) -> None:
    """Time at least `enough` seconds of runs; the first pays for loading kernels and is not counted."""
    arm.before()
    time_of(context, arm.run, 1)
    repeats, taken = 1, 0.0
    while True:
        taken = time_of(context, arm.run, repeats)
        if taken >= enough or repeats >= 1 << 16:
            break
        repeats *= 2
    arm.after()
    arm.seconds = taken / repeats


def in_blocks(context: Context, arm: Arm, metric: Metric, seconds: float, pause_seconds: float = 0.0) -> Measurement:
    """Time twelve blocks of a single arm, of about `seconds` each, each after a pause."""
    arm.repeats = max(1, round(seconds / (time_of(context, arm.run, 4) / 4)))
    arm.samples, arm.conditions = [], []
    for _ in range(LOOKS[0]):
        time.sleep(pause_seconds)
        arm.samples.append(rate(context, arm))
    return metric.row_of(context, arm)


def rate(context: Context, arm: Arm) -> float:
    """The work per second in one block; what the GPU did meanwhile is added to the arm's conditions."""
    arm.before()
    taken, sample = time_and_sample(context, arm.run, arm.repeats)
    arm.after()
    if sample:
        arm.conditions.append(sample)
    return float(arm.work * arm.repeats / taken)


def or_gap(rows: Sequence[Measurement], fact: str, what: str) -> list[Measurement | Gap]:
    """The rows, or where the time sufficed for none the Gap that says so."""
    return list(rows) or [Gap(fact=fact, reason=f"the budget ran out before {what} could be measured")]


@contextmanager
def own_threads(cpus: int) -> Iterator[None]:
    """Let torch compute with no more threads than this; torch itself counts the CPU affinity only."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(min(before, cpus))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def free_cpus(cpu: Cpu, host: Host) -> int:
    """How many CPUs of the budget others leave now, at least one; all of it where that cannot be read."""
    others = busy.watched(host, LOOK_SECONDS) or 0.0
    return max(1, min(cpu.budget, round(cpu.affinity_count - others)))
