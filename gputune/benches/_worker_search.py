"""Which numbers of workers to try: doubling, then closing in on where the curve bends. Pure: rates go in, counts come out."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from statistics import median

from gputune.facts.cpu import Cpu
from gputune.settings.dataloader_workers import NEARLY_BEST

SCALES = 1.1
"""A doubling that brings less than this ratio ends the doubling, once it has been seen twice."""
AMPLE = 1.2
"""So many times what the consumer takes is enough to stop doubling."""
FINE = 4
"""Counts are told apart to a quarter of them, around the best to half of that: finer costs more time than it is worth."""
PEAK_TRIES = 3
WORTH_TIMING = 0.75
"""Of the best rate: what is below that in a first look does not come back."""

MANY_WORKERS = 8
"""With so many to wait for in turn, one that is held up is worth hiding."""

Rates = Mapping[int, Sequence[float]]


def search(limit: int, enough: float | None = None) -> Generator[int, float, None]:
    """Yields the next count to take one sample of, and is sent its rate (0 where it failed); ends when the bend is found.

    `limit` is the most workers, `enough` the rate at which the consumer never waits. The last count is 0: loading in the training
    process itself.
    """
    rates: dict[int, list[float]] = {}
    yield from _doubling(rates, limit, enough)
    yield from _bend(rates, enough)
    if enough is None:
        yield from _peak(rates)
        yield from _bend(rates, enough)
    yield from _sample(rates, 0)


def per_cpu(cpu: Cpu) -> int:
    """Workers for each CPU that are worth trying with samples which compute.

    On a machine of one's own a second one hides what holds the first up, if there are many to wait for; where a quota or others
    have the rest, it takes of what they have. Measured here: on 16 CPUs that others used too, 32 workers loaded one of six datasets
    1.3 times as fast as 16; on 2 CPUs 3 and 4 were no faster than 2.
    """
    confined = cpu.quota is not None or cpu.budget < cpu.logical_count
    return 1 if confined or cpu.budget < MANY_WORKERS else 2


def _sample(rates: dict[int, list[float]], count: int) -> Generator[int, float, None]:
    rates.setdefault(count, []).append((yield count))


def _doubling(rates: dict[int, list[float]], limit: int, enough: float | None) -> Generator[int, float, None]:
    count, before = min(1, limit), 0
    while count > before:
        yield from _sample(rates, count)
        if not rates[count][0]:
            return
        if before and not _scales(rates, before, count):
            yield from _sample(rates, before)
            yield from _sample(rates, count)
            if not _scales(rates, before, count):
                return
        if enough is not None and median(rates[count]) >= AMPLE * enough:
            return
        before, count = count, min(2 * count, limit)


def _scales(rates: Rates, fewer: int, more: int) -> bool:
    """By the better of their samples: a disturbance only ever makes one slower."""
    grown = min(SCALES, 1 + (more / fewer - 1) / 10)
    return max(rates[more]) >= grown * max(rates[fewer])


def _bend(rates: dict[int, list[float]], enough: float | None) -> Generator[int, float, None]:
    """Halve the gap below the fewest that are nearly the best."""
    while rates:
        few = fewest(rates, enough)
        below = max((count for count in rates if count < few), default=0)
        if few - below <= max(1, few // FINE):
            return
        yield from _sample(rates, (few + below) // 2)


def _peak(rates: dict[int, list[float]]) -> Generator[int, float, None]:
    """Look between the best and its neighbours, where the doubling may have jumped over what is better."""
    for _ in range(PEAK_TRIES):
        top = max(rates, key=lambda count: median(rates[count]), default=0)
        sides = [max((c for c in rates if c < top), default=top), min((c for c in rates if c > top), default=top)]
        farther = max(sides, key=lambda count: abs(count - top))
        if abs(farther - top) <= max(1, top // (2 * FINE)):
            return
        yield from _sample(rates, (top + farther) // 2)


def fewest(rates: Rates, enough: float | None = None) -> int:
    """The fewest workers that are nearly the best, or that give enough."""
    known = {count: median(samples) for count, samples in rates.items()}
    needed = max(known.values()) / NEARLY_BEST
    if enough is not None:
        needed = min(needed, enough)
    return min(count for count, rate in known.items() if rate >= needed)


def contenders(rates: Rates, enough: float | None, *, most: int = 6, workers: int = 1 << 30) -> list[int]:
    """What to time in turn: none, which is torch's default, the fewest that are nearly the best or give enough, and those about
    as fast or beside it; at `most` so many counts, of together `workers`, unless two counts alone are more.
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
