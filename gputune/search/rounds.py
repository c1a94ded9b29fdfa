"""Which arm of a comparison runs next, and whether the comparison is decided. Pure: it has no clock and runs nothing.

A GPU's clock moves by 15 % within minutes, and a shared CPU's speed by more, so arms are compared only by samples
taken in turn. A round visits every arm once, and every second round in the reverse order of the one before (with two
arms: A B B A), so that a drift falls on all alike. With more arms each pair of rounds has an order of its own: a
power limit makes an arm faster that always follows a light one, by 10 % on an H200.

The caller asks `next` for an arm, runs one block of it and gives the sample to `push`, until `next` returns None. So
a bench can drive a comparison, and so can whoever gives orders to a training script that runs anyway.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Generic, TypeVar

from gputune.measurement import BY_FAR, FEWEST_PAIRS, LOOKS, MORE_LOOKS, Comparison, comparison_of


@dataclass(kw_only=True, eq=False)
class Arm:
    """One setting under test: what it is to be decided against, and a sample (a rate) for each round that was kept."""

    baseline: Arm | None = None
    worth: float | None = None
    """The ratio by which the arm, or its baseline, must certainly be faster to count, if that is more than a gain."""
    ranked: bool = False
    """Whether the fastest of the ranked arms is to be decided against this one too."""
    samples: list[float] = field(default_factory=list)
    every: list[float] = field(default_factory=list)
    """The samples of all rounds, with those that were disturbed."""

    def ratios(self, other: Arm) -> list[float]:
        """To another arm, over the rounds that both had."""
        return [new / old for new, old in zip(self.samples, other.samples, strict=False)]

    def against(self, other: Arm) -> Comparison | None:
        """How much faster the arm is than another; None with too few samples."""
        return comparison_of(self.ratios(other))


A = TypeVar("A", bound=Arm)


@dataclass(kw_only=True)
class Rounds(Generic[A]):
    """The whole rounds of a comparison. It ends at a look if decided by then, after `most`, or when time is up."""

    arms: list[A]
    deadline: float = math.inf
    """By the caller's clock, which gives `next` its `now`."""
    latest: float = -math.inf
    """The deadline, if it is later, for what cannot be told yet: with fewer than `FEWEST_PAIRS` rounds, or where the
    samples of an undecided pair disagree in scale."""
    reserve: float = 1.0
    """A round starts only where the deadline is at least this many of the last round's durations away."""
    most: int = LOOKS[-1]
    """How many samples each arm may have, with those that it starts with."""
    shuffled: bool = True
    """Whether more than two arms change their order. Without, only its direction alternates."""
    was_calm: Callable[[], bool] = lambda: True
    """Whether nothing disturbed the round that has just ended. One that was disturbed does not count."""

    def __post_init__(self) -> None:
        self.arms = list(self.arms)
        self._waiting: list[A] = []
        self._taken: list[tuple[A, float]] = []
        self._round_start: float | None = None

    def next(self, now: float) -> A | None:
        """The arm to run now, the same until its sample is pushed; None when the comparison has ended."""
        if not self._waiting and not self._ended(now):
            self._round_start = now
            number = max(len(self.arms[0].samples), len(self.arms[0].every))
            self._waiting = order(self.arms, number, shuffled=self.shuffled)
        return self._waiting[0] if self._waiting else None

    @property
    def within_a_round(self) -> bool:
        return bool(self._waiting or self._taken)

    def push(self, sample: float) -> None:
        self._taken.append((self._waiting.pop(0), sample))
        self._keep_whole_round()

    def drop(self, arm: A) -> None:
        """Go on without an arm that failed. What was to be decided against it no longer is."""
        self.arms.remove(arm)
        self._waiting = [other for other in self._waiting if other is not arm]
        self._taken = [(other, sample) for other, sample in self._taken if other is not arm]
        self._keep_whole_round()

    def _keep_whole_round(self) -> None:
        if self._waiting or not self._taken:
            return
        is_calm = self.was_calm()
        for arm, sample in self._taken:
            arm.every.append(sample)
            if is_calm:
                arm.samples.append(sample)
        self._taken = []

    def _ended(self, now: float) -> bool:
        kept = len(self.arms[0].samples) if self.arms else self.most
        if kept >= self.most or self._round_start is None:
            return kept >= self.most
        if kept in LOOKS and decided(self.arms):
            return True
        if kept in (LOOKS[-1], *MORE_LOOKS) and all(_pair_decided(*pair) for pair in _ranking(self.arms)):
            return True
        telling = kept >= FEWEST_PAIRS and not disagreeing(self.arms)
        deadline = self.deadline if telling else max(self.deadline, self.latest)
        return now + self.reserve * (now - self._round_start) > deadline


def order(arms: Sequence[A], number: int, *, shuffled: bool = True) -> list[A]:
    """The order of a round, by its number: the same in every run, so that a run can be repeated."""
    arranged = list(arms)
    if shuffled and len(arranged) > 2:
        random.Random(number // 2).shuffle(arranged)  # noqa: S311  nothing secret about it
    return arranged[::-1] if number % 2 else arranged


def decided(arms: Sequence[Arm]) -> bool:
    """Whether each arm is decided against its baseline, and the fastest of the ranked arms against the others."""
    return all(_pair_decided(arm, other) for arm, other in _pairs(arms))


def disagreeing(arms: Sequence[Arm]) -> bool:
    """Whether something is not decided since the ratios of the samples differ by more than what is far apart."""
    undecided = (arm.ratios(other) for arm, other in _pairs(arms) if not _pair_decided(arm, other))
    return any(max(ratios) > BY_FAR * min(ratios) for ratios in undecided)


def _pairs(arms: Sequence[Arm]) -> list[tuple[Arm, Arm]]:
    """Return the pairs to be decided: each arm and its baseline, the fastest ranked arm and each other ranked one."""
    pairs = [(arm, arm.baseline) for arm in arms if arm.baseline is not None and arm.baseline in arms]
    return pairs + _ranking(arms)


def _ranking(arms: Sequence[Arm]) -> list[tuple[Arm, Arm]]:
    ranking = [arm for arm in arms if arm.ranked]
    fastest = max(ranking, key=lambda arm: median(arm.samples), default=None)
    return [(fastest, arm) for arm in ranking if fastest is not None and arm is not fastest]


def _pair_decided(arm: Arm, other: Arm) -> bool:
    comparison = arm.against(other)
    if comparison is None or comparison.verdict == "undecided":
        return False
    if arm.worth is None:
        return True
    # Beyond what counts, one way or the other, but not with certainty.
    faster = comparison.low <= arm.worth < comparison.ratio
    slower = comparison.ratio < 1 / arm.worth <= comparison.high
    return not faster and not slower


def against_first(arms: Sequence[A]) -> list[A]:
    for arm in arms[1:]:
        arm.baseline = arms[0]
    return list(arms)


def ranked(arms: Sequence[A]) -> list[A]:
    for arm in arms:
        arm.ranked = True
    return against_first(arms)
