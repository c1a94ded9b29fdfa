"""Which numbers of workers to try: doubling, then closing in on the bend. Pure: rates in, counts out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from gputune.measurement import FEWEST_PAIRS, LOOKS

if TYPE_CHECKING:
    from gputune.facts.cpu import Cpu

NEARLY_BEST = 1.03
"""The fewest workers within this ratio of the best: each costs memory and a process."""
DOUBLINGS = 3
"""From the first count to the most; where doublings bring little, fewer workers are tried too."""
SCALES = 1.1
"""A doubling that brings less than this ratio ends the doubling, once it has been seen twice."""
AMPLE = 1.2
"""Doubling stops at so many times the rate that the consumer takes."""
FINE = 4
"""Counts are tried down to gaps of a quarter, around the best of an eighth: finer costs more time than it is worth."""
PEAK_TRIES = 3
MOST_CONTENDERS = 6
WORTH_TIMING = 0.75
"""The share of the best rate below which a count is not timed again after the search."""

Rates = Mapping[int, Sequence[float]]


def search(limit: int, enough: float | None = None, epoch: int | None = None) -> Generator[int, float, None]:
    """Yields the next count to sample, and is sent its rate (0 where it failed); ends when the bend is found.
    `limit` is the most workers, `enough` the rate at which the consumer never waits, `epoch` the batches of an epoch.
    The last count is 0: loading in the training process itself.
    """
    rates: dict[int, list[float]] = {}
    epoch = epoch if enough is None else None  # one with a step of its own goes on while the others make the rest
    yield from _doubling(rates, limit, enough, epoch)
    yield from _bend(rates, enough, epoch)
    if enough is None:
        yield from _peak(rates, epoch)
        yield from _bend(rates, enough, epoch)
    yield from _sample(rates, 0)


def sampled(
    plan: Generator[int, float, None], rate: Callable[[int], float], over: Callable[[], bool]
) -> dict[int, list[float]]:
    """The rates of the counts that a search asks for, one of them at the least; once it is `over`, of 0 too."""
    rates: dict[int, list[float]] = {}
    count = next(plan)
    try:
        while not (rates and over()):
            rates.setdefault(count, []).append(rate(count))
            count = plan.send(rates[count][-1])
    except StopIteration:
        return rates
    return rates if 0 in rates else {**rates, 0: [rate(0)]}


def even(count: int, epoch: int | None) -> int:
    """The fewest workers that make an epoch's batches in as many rounds as `count`: 8 load 16 batches as fast as 13."""
    return -(-epoch // -(-epoch // count)) if epoch and count else count


def per_cpu(cpu: Cpu) -> float:
    """The most workers for each CPU that are worth trying with samples which compute. The slowest worker holds a loader
    back, and more workers than CPUs even that out; under a quota, or beside others, they would only take CPUs away.
    """
    confined = cpu.quota is not None or cpu.budget < cpu.logical_count
    return 1.0 if confined or cpu.budget < 8 else 2.5


def _sample(rates: dict[int, list[float]], count: int) -> Generator[int, float, None]:
    rates.setdefault(count, []).append((yield count))


def _doubling(
    rates: dict[int, list[float]], limit: int, enough: float | None, epoch: int | None
) -> Generator[int, float, None]:
    count, before = even(min(limit, max(1, limit >> DOUBLINGS)), epoch), 0
    while count > before:
        yield from _sample(rates, count)
        if not rates[count][0]:
            if not before and count > 1:
                yield from _sample(rates, 1)
            return
        if before and not _scales(rates, before, count):
            yield from _sample(rates, before)
            yield from _sample(rates, count)
            if not _scales(rates, before, count):
                return
        if enough is not None and median(rates[count]) >= AMPLE * enough:
            return
        before, count = count, even(min(2 * count, limit), epoch)


def _scales(rates: Rates, fewer: int, more: int) -> bool:
    """Whether more workers are faster, by each count's best sample: disturbances only make them slower."""
    grown = min(SCALES, 1 + (more / fewer - 1) / 10)
    return max(rates[more]) >= grown * max(rates[fewer])


def _bend(rates: dict[int, list[float]], enough: float | None, epoch: int | None) -> Generator[int, float, None]:
    while rates:
        few = fewest(rates, enough)
        below = max((count for count in rates if count < few), default=0)
        middle = even((few + below) // 2, epoch)
        if few - below <= max(1, few // FINE) or middle <= below:
            return
        yield from _sample(rates, middle)


def _peak(rates: dict[int, list[float]], epoch: int | None) -> Generator[int, float, None]:
    """Try between the best and its neighbours, where the doubling may have jumped over a better count."""
    for _ in range(PEAK_TRIES if any(map(any, rates.values())) else 0):
        top = max(rates, key=lambda count: median(rates[count]))
        sides = [max((c for c in rates if c < top), default=top), min((c for c in rates if c > top), default=top)]
        far = [side for side in sides if abs(side - top) > max(1, top // (2 * FINE))]
        far = [side for side in far if even((top + side) // 2, epoch) not in rates]
        if not far:
            return
        yield from _sample(rates, even((top + max(far, key=lambda side: abs(side - top))) // 2, epoch))


def fewest(rates: Rates, enough: float | None = None) -> int:
    """The fewest workers that are nearly the best, or that give enough."""
    known = {count: median(samples) for count, samples in rates.items()}
    needed = max(known.values()) / NEARLY_BEST
    if enough is not None:
        needed = min(needed, enough)
    return min(count for count, rate in known.items() if rate >= needed)


def contenders(rates: Rates, enough: float | None, *, most: int = MOST_CONTENDERS, workers: int = 1 << 30) -> list[int]:
    """The counts to time in turn: 0, which is torch's default, the fewest that are nearly the best or give enough, and
    those about as fast, or next to it if `enough` is given: at most `most`, with together `workers`, but two at least.
    """
    few = fewest(rates, enough)
    best = max(median(samples) for samples in rates.values())
    near = [count for count in rates if count not in (0, few) and median(rates[count]) >= WORTH_TIMING * best]
    near.sort(key=lambda count: (-median(rates[count]), count))
    if enough is not None:
        near = sorted((count for count in rates if count not in (0, few)), key=lambda count: abs(count - few))
    chosen = {few, 0} & set(rates)
    if few == 0:  # so that there is something to compare it with
        near = sorted((count for count in rates if count), key=lambda count: -median(rates[count]))[: most // 2]
    for count in near:
        if len(chosen) < most and (sum(chosen) + count <= workers or len(chosen) < 2):
            chosen.add(count)
    return sorted(chosen)


def affordable(
    rates: Rates, cost: Mapping[int, float], seconds: float, enough: float | None = None, *, workers: int = 1 << 30
) -> list[int]:
    """The contenders that there is time for, where a sample takes `cost` seconds. More than three need a first look's
    rounds; three, of which one is 0, only the fewest that tell and one to spare, since two leave nothing to choose.
    """
    for most in range(MOST_CONTENDERS, 2, -1):
        names = contenders(rates, enough, most=most, workers=workers)
        rounds = LOOKS[0] if len(names) > 3 else FEWEST_PAIRS + 1
        if rounds * sum(cost[name] for name in names) <= seconds:
            return names
    return contenders(rates, enough, most=2, workers=workers)
