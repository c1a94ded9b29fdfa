"""How often the rule is certain and wrong, on simulated machines of several kinds: `python tests/noise.py`.

Each machine gives the speed of one block after another; two settings run in blocks in turn, A B B A. The table has the
share of comparisons, looked at after 12, 20 and 32 pairs, that end as a gain, for settings that are equal and for one
three times as fast; the same of a tune's last comparison, which may have 64 and 128; the share by the median's interval
alone, without what lies far apart; and the share that a single look at four or eight pairs calls a gain.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

from gputune.measurement import LOOKS, MORE_LOOKS, Comparison, comparison_of, median_interval

Machine = Callable[[random.Random], Iterator[float]]
Rule = Callable[[list[float]], Comparison | None]


def scattering(spread: float) -> Machine:
    def machine(rng: random.Random) -> Iterator[float]:
        while True:
            yield rng.lognormvariate(0, spread)

    return machine


def drifting(rng: random.Random) -> Iterator[float]:
    """Up to twice as fast, or half as fast, after 64 blocks."""
    speed, each = 1.0, rng.uniform(0.5, 2) ** (1 / 64)
    while True:
        speed *= each
        yield speed * rng.lognormvariate(0, 0.03)


def two_speeds(rng: random.Random) -> Iterator[float]:
    """A virtual CPU that shares a core: at 0.55 of its speed for a few blocks, then whole again."""
    speed = 1.0
    while True:
        if rng.random() < 0.3:
            speed = rng.choice((1.0, 0.55))
        yield speed * rng.lognormvariate(0, 0.05)


def stolen(rng: random.Random) -> Iterator[float]:
    """A CPU of which another guest takes much for a few blocks."""
    speed = 1.0
    while True:
        if speed == 1 and rng.random() < 0.15:
            speed = rng.uniform(0.1, 0.6)
        elif speed != 1 and rng.random() < 0.35:
            speed = 1.0
        yield speed * rng.lognormvariate(0, 0.05)


def standing_still(rng: random.Random) -> Iterator[float]:
    """Threads that wait for one whose CPU is taken: every second block at a tenth, by chance."""
    while True:
        yield rng.choice((1.0, 0.1)) * rng.lognormvariate(0, 0.1)


MACHINES: dict[str, Machine] = {
    "scatter of 2 %": scattering(0.02),
    "scatter of 50 %": scattering(0.5),
    "drift": drifting,
    "two speeds": two_speeds,
    "stolen": stolen,
    "standing still": standing_still,
}


def ratios(machine: Machine, rng: random.Random, gain: float = 1.0, pairs: int = LOOKS[-1]) -> list[float]:
    speeds, found = machine(rng), []
    for number in range(pairs):
        first, second = next(speeds), next(speeds)
        found.append(gain * (second / first if number % 2 else first / second))
    return found


def by_interval(ratios: list[float]) -> Comparison | None:
    """The comparison by the median's interval alone."""
    interval = median_interval(ratios)
    return interval and Comparison(ratio=median(ratios), low=interval[0], high=interval[1], pairs=len(ratios))


def verdict(taken: list[float], rule: Rule, looks: Sequence[int]) -> str:
    """The verdict at the looks of a comparison that has time for all of them."""
    found = "undecided"
    for look in looks:
        comparison = rule(taken[:look])
        found = comparison.verdict if comparison else found
        if found != "undecided":
            break
    return found


def share_of_gains(
    machine: Machine,
    gain: float = 1.0,
    *,
    pairs: int | None = None,
    rule: Rule = comparison_of,
    times: int = 4000,
    looks: Sequence[int] = LOOKS,
) -> float:
    """The share of comparisons that end as a gain: by all looks, or by one at so many pairs."""
    rng, gains = random.Random(1), 0
    for _ in range(times):
        taken = ratios(machine, rng, gain, pairs or looks[-1])
        comparison = rule(taken) if pairs else None
        gains += (comparison.verdict if comparison else "undecided" if pairs else verdict(taken, rule, looks)) == "gain"
    return gains / times


COLUMNS: dict[str, dict[str, Any]] = {
    "looks": {},
    "tune": {"looks": (*LOOKS, *MORE_LOOKS)},
    "interval": {"rule": by_interval},
    "4 pairs": {"pairs": 4},
    "8 pairs": {"pairs": 8},
}


def table(machines: dict[str, Machine]) -> None:
    titles = [f"{what}{name}" for what in ("equal: ", "3 times: ") for name in COLUMNS]
    print(f"{'':20}" + "".join(f"{title:>19}" for title in titles))
    for name, machine in machines.items():
        shares = [share_of_gains(machine, gain, **column) for gain in (1.0, 3.0) for column in COLUMNS.values()]
        print(f"{name:20}" + "".join(f"{share:>19.2%}" for share in shares))


if __name__ == "__main__":
    table(MACHINES)
