"""One run of a program that is being tuned: the part of GPUTUNE_APPLY by which its processes know what they are for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

Role = Literal["measure", "guard", "time"]
"""The purpose of a run: to time settings in turn, to record losses, or to time steps as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The purpose of a run, and what its processes need for it."""

    role: Role
    socket: str
    """The path of the Unix socket on which gputune listens."""
    scratch: str = ""
    """The folder that checkpoints are written to instead of the user's; empty to let them be written."""
    shift: int | None = None
    """By how much random seeds are shifted; None to leave them alone."""
    trains: bool | None = None
    """Whether the program is known to take an optimizer's steps, before which its calls without gradients are none of
    its steps; None where that is to be found out.
    """
    other_numbers: bool = False
    """Whether dropout draws other random numbers in the iteration that is compared."""

    @property
    def plain(self) -> dict[str, Any]:
        """For JSON, without what is as it is by itself."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Raises AttributeError, KeyError, TypeError or ValueError for what `plain` does not make."""
        trial = cls(**data)
        if trial.role not in get_args(Role):
            raise ValueError(f"there is no role {trial.role}")
        return trial
