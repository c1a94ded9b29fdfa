"""A combination with all blocks of a program's steps, and which of those that took turns is to be taken. Pure.

Not simply the fastest: what has a larger effect on results, more memory, a compiled first step or more settings must be
worth it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from gputune.knobs import LEVELS, Numerics
from gputune.measurement import LEAST_GAIN, Comparison, median_interval
from gputune.search.combination import DEFAULT, Combination, traits
from gputune.search.rounds import Arm

ALIKE = 1.01
"""The ratio of two traces of a combination up to which they tell how long the GPU works for a step."""
BEHIND = 0.9
"""The speed of an arm, to that of the fastest, below which it is dropped."""
AS_GOOD = 1.01
"""A combination of more settings must be faster than one of fewer by this ratio, or else the fewer are taken."""
WORTH_MORE = LEAST_GAIN
"""A compiled combination, whose first step takes minutes at worst, must be faster than an uncompiled one by this ratio,
and so must one with a larger effect on results than one with a lower; in the end that also by the median's interval at
`CERTAINTY`."""
CERTAINTY = 0.9
"""How certain it must be which of two gaining combinations is faster; 99 % would take minutes beside a busy host."""
LESS_WORK = 0.98
"""The ratio of the GPU's work below which a combination has clearly less to do; traces of the same are within 1 %."""
MAYBE_AS_FAST = 0.95
"""The speed of an arm, to that of the fastest, from which on it may be as fast, if the rounds leave that open."""
MORE_MEMORY = 1.10
WORTH_MEMORY = 1.05
"""A combination that takes more than `MORE_MEMORY` times the memory of torch's defaults must be faster, by this ratio,
than the best one that does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The speed, the memory and the waiting of a few steps in a row with one combination of settings."""

    rate: float
    """Steps/s."""
    peak_bytes: int | None = None
    """The peak of the memory allocated on the GPU; None without a GPU."""
    device_seconds: float | None = None
    """How long the GPU works for a step; None where that is not known."""
    waited: float = 0.0
    """The share of the time in which the program waited for its data loader."""


@dataclass(kw_only=True, eq=False)
class Tried(Arm):
    combination: Combination
    stage: str
    peaks: list[int] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    device_seconds: float | None = None

    def note(self, block: Block) -> float:
        """Keep what a block showed beside its rate, and return that."""
        if block.peak_bytes is not None:
            self.peaks.append(block.peak_bytes)
        self.waits.append(block.waited)
        self.device_seconds = block.device_seconds
        return block.rate

    @property
    def rate(self) -> float:
        return median(self.samples) if self.samples else 0.0

    @property
    def peak_bytes(self) -> int | None:
        return max(self.peaks, default=None)


def agreed(traces: Sequence[float | None]) -> float | None:
    """How long the GPU works for a step by several traces; None where any failed, or where they differ as steps do."""
    known = [one for one in traces if one]
    if not known or len(known) < len(traces) or max(known) > ALIKE * min(known):
        return None
    return fmean(known)


def far_behind(arms: Sequence[Tried]) -> list[Tried]:
    """The arms that are out after the first look: far behind the fastest, and slower in every round of both."""
    fastest = max(arms, key=lambda arm: arm.rate)
    return [arm for arm in arms if arm.rate < BEHIND * fastest.rate and all(ratio < 1 for ratio in arm.ratios(fastest))]


def choice(arms: Sequence[Tried], memory: int | None, *, must_be_certain: bool = False) -> Tried:
    """The arm to go on with: the fastest, or one of fewer settings or of a lower effect on results that is as fast;
    more memory must be earned. If it `must_be_certain`, a larger effect on results must certainly be faster.
    """
    frugal = [arm for arm in arms if not uses_more_memory(arm, memory)]
    best = _likely_fastest(arms)
    if frugal and uses_more_memory(best, memory):
        other = _likely_fastest(frugal)
        best = best if best.rate > WORTH_MEMORY * other.rate else other
    arm_of = {arm.combination: arm for arm in sorted(frugal, key=lambda arm: -arm.rate)}
    found = plainest(best.combination, arm_of, lambda one: _is_worth_it(best, arm_of[one], must_be_certain))
    return arm_of.get(found, best)


def plainest(
    fastest: Combination,
    others: Iterable[Combination],
    is_worth_it: Callable[[Combination], bool],
    order: Callable[[Combination], tuple[Any, ...]] | None = None,
) -> Combination:
    """The plainest combination over which the fastest is not worth its price; of equally plain ones the first. The
    `order` begins with the plainness.
    """
    key = order or plainness
    as_good = [one for one in others if key(one) < key(fastest) and not is_worth_it(one)]
    return min(as_good, key=key, default=fastest)


def plainness(combination: Combination) -> tuple[int, int, bool]:
    """A sort key: effect on results, then steps away from torch's defaults; float16 is two, for its loss scaler."""
    steps = len(combination.items) + (combination.values.get("amp_dtype") == "float16")
    return combination.effect, steps, combination.is_compiled


def _likely_fastest(arms: Sequence[Tried]) -> Tried:
    """The fastest arm; of those that may be as fast by their rounds, the fastest that leaves the GPU the least to do:
    beside a host that limits and disturbs the steps, an arm that leaves it more is faster by luck.
    """
    fastest = max(arms, key=lambda arm: arm.rate)
    may_be = [arm for arm in arms if arm.rate >= MAYBE_AS_FAST * fastest.rate and not certainly_slower(arm, fastest)]
    return max(with_least_work(may_be) or [fastest], key=lambda arm: arm.rate)


def certainly_slower(arm: Tried, other: Tried) -> bool:
    """Whether an arm is slower by the interval of the median ratio; with too few rounds for one nothing is certain."""
    interval = median_interval(arm.ratios(other))
    return interval is not None and interval[1] < 1


def with_least_work(arms: Sequence[Tried]) -> list[Tried]:
    """The arms for which the GPU works about as long as for the lightest; empty where that is not known of all."""
    times = [arm.device_seconds for arm in arms if arm.device_seconds]
    if len(times) < len(arms):
        return []
    return [arm for arm in arms if arm.device_seconds and LESS_WORK * arm.device_seconds <= min(times)]


def _is_worth_it(best: Tried, other: Tried, must_be_certain: bool) -> bool:
    compiles = best.combination.is_compiled and not other.combination.is_compiled
    lower = other.combination.effect < best.combination.effect
    if best.rate <= (WORTH_MORE if compiles or lower else AS_GOOD) * other.rate or _is_by_luck(best, other):
        return False
    interval = median_interval(best.ratios(other), CERTAINTY) if lower and must_be_certain else None
    return interval is None or interval[0] > 1


def _is_by_luck(best: Tried, other: Tried) -> bool:
    """Whether an arm seems to be faster by settings that spare the GPU alone, and leave it as much to do."""
    spares_host = any(traits(name).spares_host for name in best.combination.beyond(other.combination).values)
    return not spares_host and other in with_least_work([best, other]) and not certainly_slower(other, best)


def uses_more_memory(arm: Tried, memory: int | None) -> bool:
    return bool(memory) and arm.peak_bytes is not None and arm.peak_bytes > MORE_MEMORY * (memory or 0)


def gaining(arms: Sequence[Tried]) -> list[tuple[Tried, Comparison]]:
    default = next(arm for arm in arms if arm.combination == DEFAULT)
    return [(arm, found) for arm in arms if (found := arm.against(default)) and found.verdict == "gain"]


def best_by_level(arms: Sequence[Tried]) -> Iterator[tuple[Numerics, Combination]]:
    """For each level of effects on results, the best of the last comparison's combinations that gains within it."""
    faster = [arm for arm, _ in gaining(arms)]
    for level in LEVELS:
        within = [arm for arm in faster if LEVELS.index(arm.combination.level) <= LEVELS.index(level)]
        best = max(within, key=lambda arm: arm.rate, default=None)
        yield level, best.combination if best else DEFAULT
