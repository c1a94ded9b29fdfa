"""Which of the combinations that took turns is to be taken. Pure.

Not simply the fastest: what has a larger effect on results, more memory, a compiled first step or more settings must be
worth it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputune.measurement import LEAST_GAIN, Comparison, comparison_of, median_interval
from gputune.settings import LEVELS, Numerics
from gputune.trials.combination import DEFAULT, Combination
from gputune.trials.tried import Tried

BEHIND = 0.9
"""The speed of an arm, to that of the fastest, below which it is dropped."""
AS_GOOD = 1.01
"""A combination of more settings must be faster than one of fewer by this ratio, or else the fewer are taken; and where
it leaves the GPU as much to do, certainly so.
"""
WORTH_MORE = LEAST_GAIN
"""A compiled combination, whose first step takes minutes at worst, must be faster than an uncompiled one by this ratio,
and so must one with a larger effect on results than one with a lower; in the end that also by the median's interval at
`CERTAINTY`.
"""
CERTAINTY = 0.9
"""Of two combinations that both gain over torch's defaults. A gain itself needs 99 %, for which the difference between
the two would need minutes of rounds beside a busy host.
"""
LESS_WORK = 0.98
"""The time that the GPU works for a step, to that of another combination, below which it has clearly less to do: ten
times as far from 1 as two readings of one combination are.
"""
MORE_MEMORY = 1.10
WORTH_MEMORY = 1.05
"""A combination that takes more than `MORE_MEMORY` times the memory of torch's defaults must be faster, by this ratio,
than the best one that does not."""


def behind(arms: Sequence[Tried]) -> list[Tried]:
    """The arms that are out after the first look: far behind the fastest, and slower in every round of both."""
    fastest = max(arms, key=lambda arm: arm.rate)
    return [arm for arm in arms if arm.rate < BEHIND * fastest.rate and _always_slower(arm, fastest)]


def _always_slower(arm: Tried, other: Tried) -> bool:
    return all(one < beside for one, beside in zip(arm.samples, other.samples, strict=False))


def choice(arms: Sequence[Tried], memory: int | None, *, certain: bool = False) -> Tried:
    """The arm to go on with: the fastest, or one of fewer settings or of a lower effect on results that is as fast;
    more memory must be earned. Where the choice must be `certain`, a larger effect must be.
    """
    frugal = [arm for arm in arms if not greedy(arm, memory)]
    fastest = _fastest(arms)
    if frugal and greedy(fastest, memory):
        other = _fastest(frugal)
        fastest = fastest if fastest.rate > WORTH_MEMORY * other.rate else other
    plainer = [arm for arm in frugal if _plainness(arm) < _plainness(fastest)]
    as_good = [arm for arm in plainer if not _is_worth_it(fastest, arm, certain)]
    return min(as_good, key=lambda arm: (_plainness(arm), -arm.rate), default=fastest)


def _plainness(arm: Tried) -> tuple[int, int]:
    return effect(arm.combination), len(arm.combination.items)


def _fastest(arms: Sequence[Tried]) -> Tried:
    """The fastest arm of those that leave the GPU the least to do, if these may be as fast as any: beside a host that
    limits and disturbs the steps, more work for the GPU is no faster but by luck, and shows once the limit is gone.
    """
    fastest = max(arms, key=lambda arm: arm.rate)
    may_be = [arm for arm in arms if not _certainly_slower(arm, fastest)]
    return max(lightest(may_be) or [fastest], key=lambda arm: arm.rate)


def _certainly_slower(arm: Tried, other: Tried) -> bool:
    interval = median_interval(_ratios(arm, other), CERTAINTY)
    return _always_slower(arm, other) if interval is None else interval[1] < 1


def lightest(arms: Sequence[Tried]) -> list[Tried]:
    """The arms for which the GPU works about as long as for that for which it works least; empty where that is not
    known of all.
    """
    times = [arm.device_seconds for arm in arms if arm.device_seconds]
    if len(times) < len(arms):
        return []
    return [arm for arm in arms if arm.device_seconds and LESS_WORK * arm.device_seconds <= min(times)]


def _is_worth_it(fastest: Tried, other: Tried, certain: bool) -> bool:
    """Whether the fastest arm is so much faster than another that what it has beyond that is worth it."""
    compiles = "compile" in fastest.combination.values and "compile" not in other.combination.values
    lower = is_lower(other.combination, fastest.combination)
    if fastest.rate <= (WORTH_MORE if compiles or lower else AS_GOOD) * other.rate:
        return False
    if other in lightest([fastest, other]) and not _certainly_slower(other, fastest):
        return False  # by luck, then: the GPU has as much to do
    interval = median_interval(_ratios(fastest, other), CERTAINTY) if lower and certain else None
    return interval is None or interval[0] > 1


def effect(combination: Combination) -> int:
    """On results, as a number that is larger for a larger one. Another order of rounding counts as none."""
    return max(LEVELS.index(combination.level), LEVELS.index("rounding"))


def is_lower(one: Combination, other: Combination) -> bool:
    return effect(one) < effect(other)


def greedy(arm: Tried, memory: int | None) -> bool:
    return bool(memory) and arm.peak_bytes is not None and arm.peak_bytes > MORE_MEMORY * (memory or 0)


def gain(arm: Tried, default: Tried) -> Comparison | None:
    """How much faster an arm is than another of the same rounds."""
    return comparison_of(_ratios(arm, default))


def _ratios(arm: Tried, other: Tried) -> list[float]:
    return [new / old for new, old in zip(arm.samples, other.samples, strict=True)]


def gaining(arms: Sequence[Tried]) -> list[tuple[Tried, Comparison]]:
    """The arms of the last comparison that gain over torch's defaults, and how much."""
    default = next(arm for arm in arms if arm.combination == DEFAULT)
    return [(arm, found) for arm in arms if (found := gain(arm, default)) and found.verdict == "gain"]


def by_level(arms: Sequence[Tried]) -> Iterator[tuple[Numerics, Combination]]:
    """For each level of effects on results, the best of the last comparison's combinations that gains within it."""
    faster = [arm for arm, _ in gaining(arms)]
    for level in LEVELS:
        within = [arm for arm in faster if LEVELS.index(arm.combination.level) <= LEVELS.index(level)]
        best = max(within, key=lambda arm: arm.rate, default=None)
        yield level, best.combination if best else DEFAULT
