"""The steps and the time that a search takes of a program. Pure: its clock is given."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from gputune.search.combination import DEFAULT, Combination

SECONDS = 35.0
"""How long the search takes at most, but for compiling; longer where steps are slow, see `STEPS_OF_TIME`."""
STEPS_OF_TIME = 100
"""The search has the time of so many of the program's own steps at the least."""
STEPS = 400
"""The most steps of a search where the user says no number, or as many as take `STEPS_SECONDS` with the fastest arm."""
STEPS_SECONDS = 15.0
SHORT_SECONDS = 88.0
"""The last comparison may have more than `STEPS` and `SECONDS` until the whole run has taken so long, with compiling:
with less, noise hides gains beside a disturbed host."""
BLOCK, FEWEST, MOST = 0.04, 2, 48
"""How many seconds of steps a block has, and how many steps at the least and at the most. A step that is not timed
comes before each: in blocks of one, half of the search would be spent on these."""
FIRST_SETTLE, SETTLE = 3, 1
"""The steps behind a switch that are not timed, the first time and later."""
BLOCKS = 130
"""Into how many blocks the user's number of steps is divided at the least, where blocks may be that short."""

Scarce = Literal["steps", "minutes", "seconds"]


@dataclass(kw_only=True)
class Budget:
    """The steps and the time that a search may take, and how much of both is used up."""

    clock: Callable[[], float]
    """In seconds."""
    most: int | None = None
    """The most steps, where the user says a number."""
    used: int = 0
    """How many steps the search has taken."""
    most_seconds: float = math.inf
    """How long the search may take in all, with compiling and all else."""
    apart: float = 0.0
    """The seconds that do not count as the search's: of compiling, and of trying numbers of workers."""
    is_final: bool = False
    """Whether the search has come to its last comparison."""
    step_seconds: dict[Combination, float] = field(default_factory=dict)
    """How long a step took with each combination, in its latest block."""

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count the time from now on."""
        self._begun = self.clock()

    @property
    def seconds(self) -> float:
        """How long the search has gone on, in seconds, with all that does not count as its own."""
        return self.clock() - self._begun

    @property
    def share(self) -> float:
        """How much of the search is used up, 1 at its end: the larger of the shares of its time and of its steps."""
        return max(self._shares.values(), default=0.0)

    @property
    def scarcest(self) -> Scarce:
        """Of what the search is used up by the most: the steps, the time for the tune, or the search's own time."""
        return max(self._shares, key=lambda one: self._shares[one], default="seconds")

    @property
    def _shares(self) -> dict[Scarce, float]:
        if not self.step_seconds:
            return {}
        seconds = self.seconds
        most_seconds = max(SECONDS, STEPS_OF_TIME * self.step_seconds[DEFAULT])
        most_steps = self.most or max(STEPS, STEPS_SECONDS / min(self.step_seconds.values()))
        shares: dict[Scarce, float] = {
            "steps": self.used / most_steps, "minutes": seconds / self.most_seconds,
            "seconds": (seconds - self.apart) / most_seconds,
        }  # fmt: skip
        if self.most is None:  # no number that anybody gave
            share = max(shares["seconds"], shares.pop("steps"))
            shares["seconds"] = min(share, seconds / SHORT_SECONDS) if self.is_final else share
        return shares

    def steps(self, combination: Combination) -> int:
        """How many steps a block with the combination has: few as long as nothing is known of how long they take."""
        if not self.step_seconds:
            return FEWEST
        affordable = MOST if self.most is None else max(FEWEST, self.most // BLOCKS)
        seconds = self.step_seconds.get(combination, self.step_seconds[DEFAULT])
        return min(max(FEWEST, round(BLOCK / seconds)), MOST, affordable)

    def settle(self, combination: Combination) -> int:
        return SETTLE if combination in self.step_seconds else FIRST_SETTLE
