"""How far long work has come, for those who watch it."""

from dataclasses import dataclass

READING = "reading this machine, and importing torch"
"""The first part of all long work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is being done now."""

    part: str
    """The part of the work: a bench, the guard, a stage of a search."""
    doing: str = ""
    """What of this part is being done; empty at first."""
    number: int | None = None
    """The place of this part among all `count`, from 1 on."""
    count: int | None = None
