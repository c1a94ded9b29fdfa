"""How long a search for a batch size still takes, by what it has tried so far. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gputune.batch_size.trials import MARGIN, Trial, expected_left, largest, next_batch

MOST_TRIALS = 64
_WHOLE = 10**6


def batches_to_come(trials: Sequence[Trial], start: int, most: int) -> list[int]:
    """Return the batches that will be tried if the memory goes on to grow as the largest two trials say, and without
    end where these show no growth.
    """
    made, found = list(trials), list[int]()
    while (batch := next_batch(made, start, most)) is not None and len(found) < MOST_TRIALS:
        found.append(batch)
        made.append(_as_expected(trials, batch))
    return found


def seconds_to_find(batches: Sequence[int], seconds: Callable[[int], float], longest: float, left: float) -> float:
    """Return how long trying these batches takes, each so many `seconds`: until one would take longer than the
    `longest` allowed, or than is `left`.
    """
    total = 0.0
    for batch in batches:
        takes = seconds(batch)
        if takes > longest or total + takes > left:
            break
        total += takes
    return total


def tried_again(trials: Sequence[Trial]) -> list[int]:
    """Return the batches that a fresh process will try once more."""
    again = [batch for margin in (MARGIN, 0.0) if (batch := largest(trials, margin)) is not None]
    return list(dict.fromkeys(again))


def _as_expected(trials: Sequence[Trial], batch: int) -> Trial:
    left = expected_left(trials, batch)
    made = Trial(batch=batch, left_bytes=int(_WHOLE * (1.0 if left is None else left)), total_bytes=_WHOLE)
    return replace(made, fate="no memory") if left is not None and left < 0 else made
