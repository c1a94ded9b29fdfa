"""Which profile `auto` means: the one GPUTUNE_PROFILE names, else this machine's cached one, else a shipped one."""

from collections.abc import Mapping
from pathlib import Path

from gputune.errors import ProfileError
from gputune.profile import Fingerprint, places

AUTO = "auto"
"""Given instead of a profile's path; a file of that name can be given as ./auto."""

VARIABLE = "GPUTUNE_PROFILE"


def named(environ: Mapping[str, str]) -> Path | None:
    """The path in GPUTUNE_PROFILE; None where that is unset or empty."""
    return Path(environ[VARIABLE]) if environ.get(VARIABLE) else None


def locate(here: Fingerprint, environ: Mapping[str, str]) -> Path:
    """The path of the profile for this machine. Raises ProfileError where no profile fits."""
    path = named(environ) or places.cached(here, environ) or places.shipped(here)
    if path is None:
        raise ProfileError(
            f"there is no profile for this machine ({here.device or 'unknown'}, torch {here.torch or 'not found'})",
            f"write one with gputune probe, name one with {VARIABLE}, or set GPUTUNE_PROBE=missing",
        )
    return path
