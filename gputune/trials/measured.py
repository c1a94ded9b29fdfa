"""A block of a program's steps, a combination with all its blocks, and the result of a measuring run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from gputune.facts import Facts
from gputune.knobs import Value
from gputune.live.orders import Found, Hello
from gputune.profile import Guard
from gputune.rounds import Arm
from gputune.trials.combination import Combination

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The order for a measuring run: the settings it may try, on which machine, within which limits."""

    candidates: Mapping[str, Value]
    facts: Facts
    steps: int | None = None
    """The most steps that the search may take; None for its own limit."""
    compared_calls: int = 0
    """How many calls' outputs are compared with FP32's for each combination, in a program that trains nothing."""


@dataclass(kw_only=True)
class Measured:
    hello: Hello
    found: Found
    arms: list[Tried]
    """The last comparison: torch's defaults, the winner, what is left of it within each level, and its rivals."""
    tried: list[Tried]
    left: dict[str, str]
    """By setting, why it could not be tried."""
    failed: dict[str, str]
    steps: int
    seconds: float
    conditions: dict[str, float]
    agreed: dict[str, Guard] = field(default_factory=dict)
    """By combination, how its outputs agree with FP32's; empty for a program that trains."""
    waits: float = 0.0
    """The share of a step with torch's defaults in which the program waits for its data."""
