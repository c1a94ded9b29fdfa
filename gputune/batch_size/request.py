"""The input of a search for a batch size, and its answer."""

from dataclasses import dataclass

from gputune.batch_size.trials import Trial
from gputune.measurement import Comparison, Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`make` names the callable that returns the step (`path.py:callable`); the search takes about `seconds`."""

    make: str
    device: str = "auto"
    start: int = 1
    most: int = 65536
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """The answer."""

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
    """The smallest batch with the margin that is within 3 % of the best throughput; None where none was timed."""
    gain: Comparison | None
    """How much faster it is than the smallest that was timed; None for that one, or with too few samples."""
    trials: tuple[Trial, ...]
    """The last trial of each batch, in the order of the batches."""
    timed: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    """The limits of this answer."""

    def trial(self, batch: int) -> Trial:
        return next(trial for trial in self.trials if trial.batch == batch)
