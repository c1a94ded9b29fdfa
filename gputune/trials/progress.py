"""The parts of a tune, told to those who watch it."""

from collections.abc import Callable
from dataclasses import dataclass

from gputune.progress import READING, Progress

MEASURING = "measuring the program's own steps"
CALLS = "it trains nothing: measuring its calls without gradients"
STEP, CALL = "its first training step", "its tenth call without gradients"
WAITING = {None: f"waiting for {STEP}, or {CALL}", True: f"waiting for {STEP}", False: f"waiting for {CALL}"}
"""By whether the program is known to train."""
GUARDING, CONFIRMING = "guarding the loss", "confirming in whole starts"


@dataclass(kw_only=True)
class TuneProgress:
    """Numbers the parts of a tune: the search, the guard if there is one, and the confirmation."""

    tell: Callable[[Progress], None]
    is_guarded: bool = True

    def reading(self) -> None:
        self.tell(Progress(part=READING))

    def waiting_for_calm(self) -> None:
        self.tell(Progress(part="waiting for a calm machine"))

    def searching(self, part: str, doing: str = "") -> None:
        self._tell(1, part, doing)

    def guarding(self, doing: str) -> None:
        self._tell(2, GUARDING, doing)

    def confirming(self, doing: str) -> None:
        self._tell(3 if self.is_guarded else 2, CONFIRMING, doing)

    def _tell(self, number: int, part: str, doing: str) -> None:
        self.tell(Progress(part=part, doing=doing, number=number, count=3 if self.is_guarded else 2))
