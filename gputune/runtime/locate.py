"""Which profile `auto` means: the one GPUTUNE_PROFILE names, else this machine's cached one, else a shipped one."""

from collections.abc import Mapping
from pathlib import Path

from gputune.errors import ProfileError
from gputune.host.stderr import say
from gputune.profile import Fingerprint, Profile, load, places

AUTO = "auto"
"""Given instead of a profile's path; a file of that name can be given as ./auto."""

VARIABLE = "GPUTUNE_PROFILE"


def named(environ: Mapping[str, str]) -> Path | None:
    """The path in GPUTUNE_PROFILE; None where that is unset or empty."""
    return Path(environ[VARIABLE]) if environ.get(VARIABLE) else None


def located(here: Fingerprint, environ: Mapping[str, str]) -> Profile:
    """The profile for this machine; a line on stderr names each that is passed by, since it cannot be trusted or read.

    Raises ProfileError where no profile fits, and where the one that GPUTUNE_PROFILE names cannot be read.
    """
    if path := named(environ):
        return load(path)
    if cached := places.found(here, environ, say):
        return cached[1]
    if path := places.shipped(here):
        return load(path)
    raise ProfileError(
        f"there is no profile for this machine ({here.device or 'unknown'}, torch {here.torch or 'not found'})",
        f"write one with gputune probe, name one with {VARIABLE}, or set GPUTUNE_PROBE=missing",
    )
