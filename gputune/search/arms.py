"""A block of a program's steps, and a combination with all its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from gputune.search.combination import Combination
from gputune.search.rounds import Arm

ALIKE = 1.01
"""The ratio of two traces of a combination up to which they tell how long the GPU works for a step."""


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
    """How long the GPU works for a step by several traces; None where these differ, as those of a program whose steps
    have more or less to do, or where any failed.
    """
    known = [one for one in traces if one]
    if not known or len(known) < len(traces) or max(known) > ALIKE * min(known):
        return None
    return fmean(known)
