"""How far a profile may affect numerical results.

Without a limit, nothing beyond TF32 takes effect by itself: settings that affect results more (mixed precision) need a
line in the script, and by writing it the user agrees.
"""

from collections.abc import Mapping

from gputune.errors import UsageError
from gputune.plugins import Setting
from gputune.profile import Profile
from gputune.settings import LEVELS, Numerics, Value, load
from gputune.settings._evidence import first

VARIABLE = "GPUTUNE_NUMERICS"
"""The limit for this process and all its children; `gputune apply --numerics` sets it."""


def limit(requested: str | None, environ: Mapping[str, str]) -> Numerics | None:
    """The lower of the requested limit and the environment's; None where neither is given.

    Raises UsageError for an unknown level.
    """
    limits = [_level(word, name) for name, word in (("numerics", requested), (VARIABLE, environ.get(VARIABLE))) if word]
    return min(limits, key=LEVELS.index, default=None)


def tf32_line(profile: Profile, applied: Mapping[Setting, Value]) -> str:
    """The line for a user who set no limit and gets TF32; empty where the profile does not turn on TF32 for matmuls."""
    if not profile.fingerprint.gpu or applied.get(load("matmul_precision")) != "tf32":
        return ""
    error = first(profile.measurements, "precision", "relative_error", dtype="tf32")
    tf32 = f"TF32 with a relative error of {error.median:.1e}, as measured" if error else "TF32"
    return f"FP32 matmul runs in {tf32}; --numerics rounding avoids it, --numerics tf32 accepts it without this line"


def _level(word: str, name: str) -> Numerics:
    if word not in LEVELS:
        raise UsageError(f"{name}: {word!r} is not a level", f"choose from {', '.join(LEVELS)}")
    return word
