"""Whether the loss with some settings stays within the range of FP32's own runs, which differ in their seeds. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

from gputune.trials.recorded import Recorded
from gputune.trials.why import Reason, Why

PARTS = 5
FIRST = 3
"""The first iterations, which are the same with and without the settings, are in no part."""
WIDER = 0.02
MOST_TIMES = 3.0
"""A small residual network fell to 0.004 to 0.013 of 1.4, by the seed, and in bfloat16 to 0.022 with two of eight."""
FLOOR = 1e-4
"""The share of its first loss below which nobody looks at a program's loss."""


def spread(
    fp32: Sequence[Recorded], tuned: Sequence[Recorded]
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...], list[Why]]:
    """The range of FP32's mean losses in each part, those with the settings, and where these leave it."""
    band, seen, left = [], [], []
    first = max((abs(loss) for one in fp32 for loss in one.losses[:1] if loss is not None), default=0.0)
    for place in range(PARTS):
        plain = [_part(one, place) for one in fp32]
        own = [_part(one, place) for one in tuned]
        if not all(plain) or not all(own):
            continue
        means, ours = [fmean(part) for part in plain], [fmean(part) for part in own]
        if not all(map(math.isfinite, ours)):
            break
        low, high = min(means), max(means)
        error = max((stdev(part) / math.sqrt(len(part)) for part in plain if len(part) > 1), default=0.0)
        margin = max(high - low, WIDER * max(map(abs, means)), 3 * error, FLOOR * first)
        above = max(margin, high * (min(high / low, MOST_TIMES) - 1)) if low > 0 else margin
        worst = max(ours, key=lambda one: max(one - high, low - one))
        band.append((low, high))
        seen.append(worst)
        if not low - margin <= worst <= high + above:
            edge = high + above if worst > high else low - margin
            left.append((place, Reason.SPREAD(f"{worst:.4g}", place + 1, PARTS, f"{edge:.4g}")))
    counts = len(left) > 1 or any(place == PARTS - 1 for place, _ in left)
    return tuple(band), tuple(seen), [why for _, why in left] if counts else []


def _part(one: Recorded, place: int) -> list[float]:
    """The losses of one part of a run."""
    losses = one.losses[FIRST:]
    edges = list(pairwise(len(losses) * part // PARTS for part in range(PARTS + 1)))
    return [loss for loss in losses[slice(*edges[place])] if loss is not None]
