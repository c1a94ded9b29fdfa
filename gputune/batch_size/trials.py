"""The input of a search for a batch size and its answer; which batch to try next, and what the trials so far show.

Pure: nothing is run here.

The boundary between what fits and what does not is found by doubling and bisection. The memory that a step needs grows
close to linearly with its batch, so a line through two trials often shows where the boundary is, and the search closes
in from there; every third trial halves the interval all the same, so that a misleading line costs little. A line is a
guess, never an answer: every batch in the answer was tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

from gputune.measurement import LEAST_GAIN, Comparison, Measurement

MARGIN = 0.10
"""The share of the memory that a batch must leave at its peak: fragmentation grows in long runs, and evaluation and
checkpoints come on top of what a step needs."""
TOLERANCE = 0.03
"""The search for the boundary ends when it lies between two batches that differ by less than this share."""
PLAUSIBLE = 0.8
"""A rate from a single trial is rough: batches below this share of the highest rate are not timed."""
MOST_TIMED = 6
_GROWTH = 0.01
"""Two trials define a line only where the memory grew by this share between them: less is noise."""
_BELOW = 0.99
"""The next trial is made at this share of the boundary that a line predicts."""

Fate = Literal["ran", "no memory", "failed", "no end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizeRequest:
    """`make` names the callable that returns the step (`path.py:callable`); the search takes about `seconds`."""

    make: str
    device: str = "auto"
    start: int = 1
    most: int = 65536
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of trying one batch."""

    batch: int
    fate: Fate = "ran"
    rate: float | None = None
    """Samples per second, from a step or a few."""
    peak_bytes: int | None = None
    """The most that the process held: on a GPU what torch reserved, on the CPU all of its memory."""
    left_bytes: int | None = None
    """The memory that was left at that peak."""
    total_bytes: int | None = None
    """The size of that memory: the GPU's or torch's limit of it, the container's or the host's."""
    why: str = ""
    """Why it did not run."""

    @property
    def ran(self) -> bool:
        return self.fate == "ran"

    @property
    def left(self) -> float | None:
        """The share of the memory that was left."""
        return self.left_bytes / self.total_bytes if self.left_bytes is not None and self.total_bytes else None

    def leaves(self, margin: float) -> bool:
        return self.ran and (not margin or (self.left is not None and self.left >= margin))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    device: str
    margin: float
    """The share of the memory that `largest` leaves at its peak."""
    largest: int | None
    """The largest batch that leaves the margin; None where none does."""
    at_least: bool = False
    """Whether larger ones may leave the margin too: the search ended, by its time or at `most`, before one did not."""
    largest_run: int
    """The largest that ran at all."""
    fastest: int | None
    """The smallest batch with the margin that is within 3 % of the best throughput; None where that is not certain."""
    gain: Comparison | None
    """How much faster it is than the smallest that was timed; None for that one, or with too few samples."""
    seeming: int | None = None
    """Where it is not certain, the one that seemed to be it; None where none was timed."""
    disturbed: str = ""
    """Who else used the machine while they were timed, so that it is not certain."""
    trials: tuple[Trial, ...]
    """The last trial of each batch, in the order of the batches."""
    timed: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    """The limits of this answer."""

    def trial(self, batch: int) -> Trial:
        return next(trial for trial in self.trials if trial.batch == batch)


def next_batch(trials: Sequence[Trial], start: int, most: int) -> int | None:
    """Return the batch to try next, first for what leaves the margin, then for what runs; None once both are known."""
    wanted = (_next(trials, margin, start, most) for margin in (MARGIN, 0.0))
    return next((batch for batch in wanted if batch is not None), None)


def bounds(trials: Sequence[Trial], margin: float) -> tuple[int | None, int | None]:
    """Return (low, high): the smallest batch without the margin is `high`, the largest with it below that `low`."""
    high = min((trial.batch for trial in trials if not trial.leaves(margin)), default=None)
    below = (trial.batch for trial in trials if trial.leaves(margin) and (high is None or trial.batch < high))
    return max(below, default=None), high


def largest(trials: Sequence[Trial], margin: float = MARGIN) -> int | None:
    return bounds(trials, margin)[0]


def is_found(trials: Sequence[Trial], margin: float = MARGIN) -> bool:
    """Return whether a batch that did not leave the margin is known next to the largest that did, or to none."""
    low, high = bounds(trials, margin)
    return high is not None and (high == 1 if low is None else high - low <= _tolerance(low))


def _next(trials: Sequence[Trial], margin: float, start: int, most: int) -> int | None:
    low, high = bounds(trials, margin)
    if low is None:
        return start if high is None else high // 2 or None
    if is_found(trials, margin) or (high is None and low >= most):
        return None
    guess = _guess(trials, margin)
    if guess is None:
        batch = 2 * low if high is None else (low + high) // 2
    else:
        batch = _towards(guess, low, high)
        if len(trials) % 3 == 2:
            # Only a small step where nothing failed yet: running out of the host's memory costs a process.
            batch = max(batch, low + low // 4) if high is None else (low + high) // 2
    return _rounded(min(batch, most), low)


def _towards(guess: float, low: int, high: int | None) -> int:
    """Just below the guess, but far enough from both bounds that the next trial narrows the interval."""
    step = _tolerance(low)
    batch = max(int(guess * _BELOW), low + step)
    return min(batch, 2 * low) if high is None else min(batch, high - step)


def _guess(trials: Sequence[Trial], margin: float) -> float | None:
    """The batch that leaves exactly the margin, on the line through the two largest that ran."""
    shares = {trial.batch: trial.left for trial in trials if trial.ran and trial.left is not None}
    if len(shares) < 2:
        return None
    (small, before), (large, after) = sorted(shares.items())[-2:]
    return None if before - after < _GROWTH else large + (after - margin) * (large - small) / (before - after)


def _rounded(batch: int, low: int) -> int:
    """Round down, by at most 1 %, to a multiple of a power of two, which suits the hardware, if still above `low`."""
    unit = 1 << max(0, (batch // 100).bit_length() - 1)
    rounded = batch - batch % unit
    return rounded if rounded > low else batch


def _tolerance(low: int) -> int:
    return max(1, int(TOLERANCE * low))


def contenders(trials: Sequence[Trial]) -> list[int]:
    """Return the batches to time in turn: those that leave the margin at nearly the highest rough rate, and those
    halfway to their neighbours; of more than MOST_TIMED, the ones closest to a smaller one are dropped.
    """
    limit = largest(trials)
    rates = {trial.batch: trial.rate for trial in trials if trial.rate and limit and trial.batch <= limit}
    if not rates:
        return []
    batches = sorted(rates)
    fastest = max(batches, key=lambda batch: rates[batch])
    plausible = [batch for batch in batches if rates[batch] >= PLAUSIBLE * rates[fastest]]
    halfway = [_halfway(batches, plausible[0], -1)] + [_halfway(batches, fastest, side) for side in (-1, 1)]
    wanted = sorted({*plausible, *halfway})
    while len(wanted) > MOST_TIMED:
        pairs = [(large / small, large) for small, large in pairwise(wanted) if large not in (plausible[0], fastest)]
        wanted.remove(min(pairs)[1])
    return wanted


def _halfway(batches: list[int], batch: int, side: int) -> int:
    place = batches.index(batch) + side
    neighbour = batches[place] if 0 <= place < len(batches) else batch
    return (batch + neighbour) // 2


def best(rows: Sequence[Measurement]) -> Measurement | None:
    """Return the row of the smallest batch within 3 % of the highest rate. The rows must have been timed in turn."""
    if not rows:
        return None
    top = max(rows, key=lambda row: row.median)
    near = [row for row in rows if median(row.ratios(top) or [0.0]) * LEAST_GAIN >= 1]
    return min(near, key=lambda row: row.params["batch"], default=top)


def is_certain(rows: Sequence[Measurement], best: Measurement) -> bool:
    """Whether the rows tell batches apart: the best certainly gains over another one, or none can gain over it."""
    others = [row for row in rows if row is not best]
    over, by = (
        [one.against(two) for one, two in pairs]
        for pairs in (
            [(best, row) for row in others],
            [(row, best) for row in others],
        )
    )
    gains = any(comparison and comparison.verdict == "gain" for comparison in over)
    return gains or all(comparison and comparison.verdict == "no gain" for comparison in by)
