"""Timing settings against each other: in turn, in short blocks, in one process.

A GPU's clock moves by 15 % within minutes, and a shared CPU's speed by more, so two numbers are compared only when they were
taken in turn. A round visits every arm once, and every other round in the reverse order of the one before (with two arms:
A B B A ...), so that a drift falls on both alike. With more arms each pair of rounds has an order of its own: a power
limit makes an arm faster that always follows a light one, by 10 % on an H200. What is timed is warm: caches hold what fits
in them, and the first round is not kept.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from gputune.bench_process import Context
from gputune.bench_process.telemetry import summary
from gputune.facts.gap import Gap
from gputune.measurement import FEWEST_PAIRS, LOOKS, Measurement, of_ratios, rounded

Params = dict[str, str | int | float | bool]

BLOCK_SECONDS = 0.05
SHORTEST_BLOCK_SECONDS = 0.015
RACE_ROUNDS = 4


def nothing() -> None:
    return None


def at_once(block: Callable[[], Any]) -> Any:
    return block()


@dataclass(kw_only=True)
class Arm:
    """One setting under test. `run` does the work once; `work` is how much that is, so that a sample is work per second."""

    params: Params
    run: Callable[[], Any]
    work: float
    before: Callable[[], None] = nothing
    """Before each block, untimed: sets flags, drains queues."""
    after: Callable[[], None] = nothing
    within: Callable[[Callable[[], Any]], Any] = at_once
    """Runs a whole block, on a thread of its own for instance."""
    baseline: Arm | None = None
    """What this arm is to be decided against; None where nothing is decided about it."""
    worth: float | None = None
    """The ratio by which it, or its baseline, must certainly be faster to be counted, where that is more than a gain."""
    ranked: bool = False
    """Whether the fastest of the ranked arms is to be decided against this one too."""
    repeats: int = 1
    seconds: float = 0.0
    """Of one run, as calibrated."""
    samples: list[float] = field(default_factory=list)
    conditions: list[dict[str, float]] = field(default_factory=list)


def interleave(
    context: Context,
    arms: Sequence[Arm],
    seconds: float,
    row: Callable[[Arm], Measurement],
    block_seconds: float = BLOCK_SECONDS,
) -> list[Measurement]:
    """Measure all arms in turn, for at most about `seconds`, and turn each into a Measurement with `row`.

    It ends early at 12 or 20 rounds when every arm that has a baseline is decided against it. Where the time does not suffice for
    12 rounds the blocks are shortened; where it does not suffice for one, nothing is returned.
    """
    deadline = time.monotonic() + seconds
    for arm in arms:
        _calibrate(context, arm, block_seconds / 2)
    _set_repeats(arms, deadline - time.monotonic(), block_seconds)
    for number in range(LOOKS[-1] + 1):
        started = time.monotonic()
        for arm in _order(arms, number):
            block(context, arm)
        now = time.monotonic()
        if number == 0:
            for arm in arms:
                arm.samples.clear()
                arm.conditions.clear()
        if number in LOOKS and _all_decided(arms):
            break
        if now + (now - started) > deadline:
            break
    return [row(arm) for arm in arms if arm.samples]


def race(arms: Sequence[Arm], kept: Sequence[Arm], seconds: float, worth: float) -> list[Arm]:
    """A few rounds of many arms; then `kept`, and those whose median is `worth` times the best one's, go on to `in_turn`."""
    deadline = time.monotonic() + seconds
    for number in range(RACE_ROUNDS):
        taken = [(arm, arm.run()) for arm in _order(arms, number)]
        for arm, sample in taken:
            arm.samples.append(sample)
        if time.monotonic() > deadline:
            break
    best = max(median(arm.samples) for arm in arms)
    return [arm for arm in arms if arm in kept or median(arm.samples) >= worth * best]


def in_turn(arms: Sequence[Arm], seconds: float, at_most: float | None = None) -> None:
    """Take samples of arms whose `run` gives one itself, in the order and with the end of `interleave`. Whole rounds are kept only.

    Where `seconds` do not suffice for `FEWEST_PAIRS`, below which nothing can be said, it goes on for `at_most`.
    """
    deadline, latest = (time.monotonic() + limit for limit in (seconds, max(seconds, at_most or 0.0)))
    for number in range(len(arms[0].samples), LOOKS[-1]):
        started = time.monotonic()
        taken = [(arm, arm.run()) for arm in _order(arms, number)]
        for arm, sample in taken:
            arm.samples.append(sample)
        now = time.monotonic()
        if number + 1 in LOOKS and _all_decided(arms):
            return
        if now + (now - started) > (deadline if number + 1 >= FEWEST_PAIRS else latest):
            return


def measurement(context: Context, bench: str, unit: str, arm: Arm) -> Measurement:
    """A row of the metric `throughput`."""
    return Measurement(
        bench=bench,
        metric="throughput",
        unit=unit,
        samples=tuple(rounded(sample) for sample in arm.samples),
        params=arm.params,
        device=context.device,
        conditions=summary(arm.conditions),
    )


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
    """Find out how long one run takes, from at least `enough` seconds of them.

    The first run is not looked at: it pays for loading kernels and choosing algorithms.
    """
    arm.before()
    arm.within(partial(time_of, context, arm.run, 1))
    repeats, taken = 1, 0.0
    while True:
        taken = arm.within(partial(time_of, context, arm.run, repeats))
        if taken >= enough or repeats >= 1 << 16:
            break
        repeats *= 2
    arm.after()
    arm.seconds = taken / repeats


def _set_repeats(arms: Sequence[Arm], seconds: float, longest: float) -> None:
    share = seconds / (len(arms) * (LOOKS[0] + 2))
    length = max(SHORTEST_BLOCK_SECONDS, min(longest, share))
    for arm in arms:
        arm.repeats = max(1, round(length / arm.seconds))


def _order(arms: Sequence[Arm], number: int) -> list[Arm]:
    """The order of a round; always the same for the same number, so that a run can be repeated."""
    order = list(arms)
    if len(order) > 2:
        random.Random(number // 2).shuffle(order)  # noqa: S311  nothing secret about it
    return order[::-1] if number % 2 else order


def block(context: Context, arm: Arm) -> None:
    """Time one block of an arm and keep its sample."""
    arm.before()
    taken, sample = arm.within(partial(time_and_sample, context, arm.run, arm.repeats))
    arm.after()
    arm.samples.append(arm.work * arm.repeats / taken)
    if sample:
        arm.conditions.append(sample)


def _all_decided(arms: Sequence[Arm]) -> bool:
    pairs = [(arm, arm.baseline) for arm in arms if arm.baseline is not None]
    ranked = [arm for arm in arms if arm.ranked]
    if ranked:
        fastest = max(ranked, key=lambda arm: median(arm.samples))
        pairs += [(fastest, arm) for arm in ranked if arm is not fastest]
    return all(_is_decided(arm, other) for arm, other in pairs)


def _is_decided(arm: Arm, other: Arm) -> bool:
    comparison = of_ratios([new / old for new, old in zip(arm.samples, other.samples, strict=True)])
    if comparison is None or comparison.verdict == "undecided":
        return False
    if arm.worth is None:
        return True
    # Beyond what counts, one way or the other, but not with certainty.
    faster = comparison.low <= arm.worth < comparison.ratio
    slower = comparison.ratio < 1 / arm.worth <= comparison.high
    return not faster and not slower


def against_first(arms: Sequence[Arm]) -> list[Arm]:
    """The arms, each to be decided against the first."""
    for arm in arms[1:]:
        arm.baseline = arms[0]
    return list(arms)


def ranked(arms: Sequence[Arm]) -> list[Arm]:
    """The arms, each to be decided against the first, and the fastest against each."""
    for arm in arms:
        arm.ranked = True
    return against_first(arms)


def or_gap(rows: Sequence[Measurement], fact: str, what: str) -> list[Measurement | Gap]:
    """The rows, or where the time sufficed for none the Gap that says so."""
    return list(rows) or [Gap(fact=fact, reason=f"the budget ran out before {what}")]
