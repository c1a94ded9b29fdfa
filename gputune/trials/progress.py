"""How far a tune has come, and how long it still takes. Pure: the clock comes in.

Nothing is known of a program before its first steps, and little of its starts. What is told is corrected by each part
that ends: a start of the program takes as long as those of its kind before, or else what its steps are to take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median

from gputune.progress import READING, Progress
from gputune.trials.budget import SECONDS

Part = str
MEASURING = "measuring the program's own steps"
CALLS = "it trains nothing: measuring its calls without gradients"
GUARDING, CONFIRMING = "guarding the loss", "confirming in whole starts"

FACTS_SECONDS, START_SECONDS, STEP_SECONDS, COMPILE_SECONDS = 3.0, 5.0, 0.05, 30.0
"""What is taken for true of a program as long as nothing is known: reading the facts, a start until its second step, a
step, and compiling."""
CACHED = 0.2
"""The share of the time for compiling that it takes once more, since torch keeps what it compiled."""
END_SECONDS = 0.5
"""About how long a program takes to end."""
RECORDED_STEPS = 40
"""About how many steps it takes to record a run beside its own: comparing an iteration, and the optimizer's step."""
MOST_SLOWER = 2.0
"""By how much one part that took longer than guessed changes the guess of the next: some of it is the part's own."""


@dataclass(kw_only=True)
class Told:
    """What a tune tells. Each time says how long all of its parts still take."""

    tell: Callable[[Progress], None]
    guard_steps: int | None = None
    """The steps of each run of the guard; None where there is none."""
    guard_turns: Sequence[bool] = ()
    """The guard's runs in turn: whether each has the settings."""
    confirming_turns: Sequence[bool] = ()
    """So for the starts that confirm."""
    confirming_steps: int = 0
    confirming_seconds: float = 0.0
    """How many steps such a start takes, and how long it goes on beside them."""
    clock: Callable[[], float] = time.monotonic
    compiles: bool = True
    """Whether the program is still to be compiled in the search."""
    compiled: bool = True
    """Whether it is compiled in the starts that have the settings."""
    start_seconds: float = START_SECONDS
    compile_seconds: float = COMPILE_SECONDS
    _steps: tuple[float, int] = (0.0, 0)
    """The seconds that steps with torch's defaults took, and how many these were."""
    _slower: float = 1.0
    """How many times as long as guessed the first start of the latest part took."""
    _taken: dict[tuple[Part, bool], list[float]] = field(default_factory=dict)
    """How long starts took, by part and by whether they had the settings."""

    def reading(self) -> None:
        later = self.start_seconds + SECONDS + self._guarding() + self._confirming()
        self._tell(Progress(part=READING, left_seconds=FACTS_SECONDS).followed_by(later))

    def starting(self, part: Part = MEASURING) -> None:
        """The program starts, to be measured."""
        search = Progress(part=part, doing="waiting for its first step", left_seconds=self.start_seconds)
        self._tell(search.followed_by(self._search(SECONDS) + self._guarding() + self._confirming()), 1)

    def again(self, why: str) -> None:
        """A start failed, and the program starts again."""
        left = self.start_seconds + self._search(SECONDS)
        self._tell(Progress(part=why, left_seconds=left).followed_by(self._guarding() + self._confirming()), 1)

    def measuring(self, part: Part, doing: str, left: float) -> None:
        """The search goes on for so many seconds, but for compiling."""
        later = self._guarding() + self._confirming()
        self._tell(Progress(part=part, doing=doing, left_seconds=self._search(left)).followed_by(later), 1)

    def stepped(self, seconds: float, steps: int) -> None:
        """So many steps with torch's defaults took so many seconds."""
        self._steps = self._steps[0] + seconds, self._steps[1] + steps

    @contextmanager
    def start(self, part: Part, turns: Sequence[bool], doing: str = "") -> Iterator[None]:
        """Tell of a start of the guard or the confirmation, the first of these turns, and learn how long it takes."""
        first, *others = turns
        guessed = None if self._seen(part) else self._guess(part, first)
        later = sum(self._each(part, tuned) for tuned in others)
        number = 2
        if part == GUARDING:
            later += self._confirming()
        elif self.guard_steps:
            number = 3
        began = self.clock()
        told = Progress(part=part, doing=doing, left_seconds=self._each(part, first))
        self._tell(told.followed_by(later), number)
        yield
        taken = self.clock() - began
        self._taken.setdefault((part, first), []).append(taken)
        if guessed:
            self._slower = min(max(1 / MOST_SLOWER, taken / guessed), MOST_SLOWER)

    def _tell(self, progress: Progress, number: int | None = None) -> None:
        count = None if number is None else 3 if self.guard_steps else 2
        self.tell(replace(progress, number=number, count=count))

    def _search(self, left: float) -> float:
        return left + (self.compile_seconds if self.compiles else 0.0) + END_SECONDS

    def _guarding(self) -> float:
        return sum(self._each(GUARDING, tuned) for tuned in self.guard_turns) if self.guard_steps else 0.0

    def _confirming(self) -> float:
        return sum(self._each(CONFIRMING, tuned) for tuned in self.confirming_turns)

    def _each(self, part: Part, tuned: bool) -> float:
        """How long one start of a part takes."""
        if seen := self._taken.get((part, tuned)):
            return median(seen)
        if seen := self._seen(part):
            return median(seen) + self._compiling(tuned)
        return self._slower * self._guess(part, tuned)

    def _seen(self, part: Part) -> list[float]:
        return [*self._taken.get((part, False), ()), *self._taken.get((part, True), ())]

    def _compiling(self, tuned: bool) -> float:
        return CACHED * self.compile_seconds if tuned and self.compiled else 0.0

    def _guess(self, part: Part, tuned: bool) -> float:
        """How long a start of a part takes by what the first run shows of starts and steps."""
        whole = self.start_seconds + END_SECONDS + self._compiling(tuned)
        if part == GUARDING:
            return whole + ((self.guard_steps or 0) + RECORDED_STEPS) * self._step_seconds
        return whole + max(self.confirming_seconds, self.confirming_steps * self._step_seconds)

    @property
    def _step_seconds(self) -> float:
        seconds, steps = self._steps
        return seconds / steps if steps else STEP_SECONDS
