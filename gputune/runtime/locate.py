"""Which profile `auto` stands for: the one that GPUTUNE_PROFILE names, the cached one of this fingerprint, one that gputune brings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gputune.errors import ProfileError
from gputune.profile import Fingerprint, places

AUTO = "auto"
"""In the place of a profile's path. A file of that name is ./auto."""

VARIABLE = "GPUTUNE_PROFILE"


def named(environ: Mapping[str, str]) -> Path | None:
    """The path in GPUTUNE_PROFILE; None where it is not set, or empty."""
    return Path(environ[VARIABLE]) if environ.get(VARIABLE) else None


def chosen(here: Fingerprint, environ: Mapping[str, str]) -> Path:
    """The path of the profile for this machine. Raises ProfileError where there is none."""
    path = named(environ) or places.cached(here, environ) or places.shipped(here)
    if path is None:
        raise ProfileError(
            f"there is no profile for this machine ({here.device or 'unknown'}, torch {here.torch or 'not found'})",
            f"write one with gputune probe, name one with {VARIABLE}, or set GPUTUNE_PROBE=missing",
        )
    return path
