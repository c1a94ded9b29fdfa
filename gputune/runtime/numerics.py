"""How far a profile may go in what it does to results.

Without a limit nothing that follows by itself goes beyond TF32: what changes results further (mixed precision) takes a line in the
script, and that line is the user's word for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from gputune.errors import UsageError
from gputune.plugins import Setting
from gputune.profile import Profile
from gputune.settings import LEVELS, Numerics, Value, load
from gputune.settings._evidence import one

VARIABLE = "GPUTUNE_NUMERICS"
"""The limit for this process and all below it: what `gputune apply --numerics` hands down."""


def limit(asked: str | None, environ: Mapping[str, str]) -> Numerics | None:
    """The lower of what was asked for and what the environment allows; None where neither says anything.

    Raises UsageError for a word that is no level.
    """
    named = [_level(word, name) for name, word in (("numerics", asked), (VARIABLE, environ.get(VARIABLE))) if word]
    return min(named, key=LEVELS.index, default=None)


def tf32_line(profile: Profile, done: Mapping[Setting, Value]) -> str:
    """What a user reads who did not say how far results may change, and gets TF32; empty where the profile brings none."""
    if not profile.fingerprint.gpu or done.get(load("matmul_precision")) != "tf32":
        return ""
    error = one(profile.measurements, "precision", "relative_error", dtype="tf32")
    words = f" with a relative error of {error.median:.1e}, as measured" if error else ""
    return f"FP32 matmul runs in TF32{words}; --numerics rounding leaves it out, --numerics tf32 says nothing"


def _level(word: str, name: str) -> Numerics:
    for level in LEVELS:
        if level == word:
            return level
    raise UsageError(f"{name}: {word!r} is no level", f"choose from {', '.join(LEVELS)}")
