"""The search for the shape that a device multiplies fastest. Pure: the function that measures a shape is a parameter.

A matmul's output is cut into tiles, of which each multiprocessor computes one at a time: 133 tiles on 132
multiprocessors take two waves, nearly as long as 264. So only shapes whose waves are full are worth measuring, and
few of them; a long sum (K) spreads the cost of starting and storing a tile. Some hundred of thousands are left.

1. Every candidate once, briefly, each beside the same reference, since the clock drifts. Those far behind are dropped.
2. The best of them with other K.
3. The best of all in turn, half of them dropped after each few rounds, until the time is up.
"""

import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import median

from gputune.search.rounds import Arm, Rounds

TILE = (128, 256)
"""The tile of cuBLAS's fastest kernels on Ampere to Blackwell, either way round."""
STEP = 512
LARGEST = 15360
FULL = 0.97
"""The share of the multiprocessors that must be at work, averaged over all waves."""
DEPTHS = (6144, 9216, 12288, 15360)
FIRST_DEPTH = 12288
FINALISTS = 16
LAST = 4
"""How many are compared to the end."""
ROUNDS = 4


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """x [m, k] @ w [n, k].T"""

    m: int
    n: int
    k: int

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k


@dataclass(kw_only=True, eq=False)
class _Finalist(Arm):
    shape: Shape


Rate = Callable[[Shape], float]
"""Measures a shape briefly: TFLOP/s."""


def wave_efficiency(shape: Shape, multiprocessors: int) -> float:
    """The share of the multiprocessors that works, over all waves, with the better way round of the tile."""
    counts = [math.ceil(shape.m / rows) * math.ceil(shape.n / columns) for rows, columns in (TILE, TILE[::-1])]
    return max(tiles / multiprocessors / math.ceil(tiles / multiprocessors) for tiles in counts)


def candidates(multiprocessors: int | None, most_flops: float, largest: int = LARGEST) -> list[Shape]:
    """Shapes whose waves are full, within both limits; without multiprocessors (a CPU) all shapes of the grid."""
    step, depth = STEP, min(FIRST_DEPTH, largest)
    while 2 * (4 * step) ** 2 * depth > most_flops and step > 64:
        step, depth = step // 2, max(depth // 2, 512)
    sizes = range(2 * step, largest + 1, step)
    shapes = [Shape(m, n, depth) for m, n in product(sizes, sizes)]
    fitting = [shape for shape in shapes if shape.flops <= most_flops]
    if multiprocessors is None:
        return fitting
    full = [shape for shape in fitting if wave_efficiency(shape, multiprocessors) >= FULL]
    return full or fitting


def search(
    shapes: Sequence[Shape],
    rate: Rate,
    seconds: float,
    allowed: Callable[[Shape], bool],
    now: Callable[[], float] = time.monotonic,
) -> Shape:
    """The fastest shape, in about `seconds`, with other K only if `allowed`. Raises ValueError without shapes."""
    if not shapes:
        raise ValueError("there is no shape to look at")
    start = now()
    order = sorted(shapes)
    random.Random(0).shuffle(order)  # noqa: S311  nothing secret about it
    reference = sorted(shapes, key=lambda shape: shape.flops)[len(shapes) // 8]
    scores = _scores(order, rate, reference, lambda: now() - start < 0.45 * seconds)
    best = _top(scores, FINALISTS // 2)
    deeper = [
        other
        for shape, depth in product(best, DEPTHS)
        if shape.k in DEPTHS and (other := replace(shape, k=depth)) not in scores and allowed(other)
    ]
    scores |= _scores(deeper, rate, reference, lambda: now() - start < 0.6 * seconds)
    return _final(_top(scores, FINALISTS), rate, start + seconds, now)


def _scores(shapes: Iterable[Shape], rate: Rate, reference: Shape, in_time: Callable[[], bool]) -> dict[Shape, float]:
    """Each shape's rate as a ratio to the reference's at that time, for as many shapes as there is time for."""
    scores: dict[Shape, float] = {}
    for shape in shapes:
        if scores and not in_time():
            break
        scores[shape] = rate(shape) / rate(reference)
    return scores


def _top(scores: dict[Shape, float], count: int) -> list[Shape]:
    return sorted(scores, key=lambda shape: -scores[shape])[:count]


def _final(shapes: Sequence[Shape], rate: Rate, deadline: float, now: Callable[[], float]) -> Shape:
    left = [_Finalist(shape=shape) for shape in shapes]
    while len(left) > 1:
        most = len(left[0].samples) + ROUNDS
        rounds = Rounds(arms=left, deadline=deadline, reserve=0, most=most, shuffled=False)
        while arm := rounds.next(now()):
            rounds.push(rate(arm.shape))
        left.sort(key=lambda arm: -median(arm.samples))
        if now() >= deadline:
            break
        left = left[: max(LAST, len(left) // 2)]
    return left[0].shape
