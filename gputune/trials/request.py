"""The options of `gputune tune`, once read and found valid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gputune.profile import Profile
from gputune.settings import Numerics

GUARD_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How a command is to be tuned."""

    command: Sequence[str]
    environ: Mapping[str, str]
    profile: Profile | None = None
    """Narrows what is tried."""
    only: tuple[str, ...] = ()
    """The settings that may change; empty for all."""
    steps: int | None = None
    """The most steps of the measuring run; None for as many as it should take."""
    level: Numerics = "mixed"
    """How far results may change."""
    guard_steps: int | None = GUARD_STEPS
    """The steps of each run of the guard; None for no guard."""
    allow_writes: bool = False
    """Whether checkpoints and trackers are left alone."""
