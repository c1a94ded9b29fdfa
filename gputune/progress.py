"""How far long work has come and how long it still takes, for those who watch it. Pure: time comes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

READING = "reading this machine, and importing torch"
"""The first part of all long work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is being done, and how long the whole work still takes."""

    part: str
    """The part of the work: a bench, the guard, a stage of a search."""
    doing: str = ""
    """What of this part is being done; empty at first."""
    number: int | None = None
    """The place of this part among all `count`, from 1 on."""
    count: int | None = None
    left_seconds: float | None = None
    """About how long the whole work still takes; None where that cannot be told."""
    later_seconds: float = 0.0
    """What of that comes after this part."""

    def after(self, seconds: float) -> float | None:
        """Return how much is left so many seconds later, while the part still goes on: at least all that follows it."""
        return None if self.left_seconds is None else max(self.left_seconds - seconds, self.later_seconds, 0.0)

    def then(self, doing: str, seconds: float) -> Progress:
        """Return the progress so many seconds later, in the same part."""
        return replace(self, doing=doing, left_seconds=self.after(seconds))

    def followed_by(self, seconds: float) -> Progress:
        """Return the progress of the work of which this is the beginning, and that goes on for so many seconds."""
        left = None if self.left_seconds is None else self.left_seconds + seconds
        return replace(self, left_seconds=left, later_seconds=self.later_seconds + seconds)


def before(tell: Callable[[Progress], None], later: Callable[[], float]) -> Callable[[Progress], None]:
    """Return a function that tells of the beginning of some work. `later` gives the seconds of the rest; it is asked
    at first, and when a part begins.
    """
    known: float | None = None

    def told(progress: Progress) -> None:
        nonlocal known
        if known is None or not progress.doing:
            known = later()
        tell(progress.followed_by(known))

    return told
