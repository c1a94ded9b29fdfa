"""How far a tune has come, for those who watch it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    part: str
    """The part of the work: measuring, guarding, confirming."""
    doing: str = ""
    """The combination that is being tried, or what is waited for."""
    steps: int | None = None
    """The steps of the program that this part used so far."""
    share: float | None = None
    """The share of this part that is done, in time; None where it cannot be told."""
