"""Where profiles are kept, so that `gputune apply auto` finds the one of this machine.

A measured profile is cached under the fingerprint of what it was measured on: in `$XDG_CACHE_HOME/gputune` (else
`~/.cache/gputune`), which `gputune probe` fills, and in /var/lib/gputune and /etc/gputune, which an administrator fills. The
profiles that gputune brings are named by hardware.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gputune.errors import MeasureError
from gputune.profile.document import Fingerprint, Profile
from gputune.profile.writing import save

MACHINE = (Path("/var/lib/gputune"), Path("/etc/gputune"))

KEYS = ("gpu", "compute_capability", "driver", "torch", "cuda", "cpu")
"""What names a cached profile: what can be told without importing torch, but for counts, which a container or a rank has of its own
(a choice that rests on those is skipped by itself)."""


def cached(here: Fingerprint, environ: Mapping[str, str]) -> Path | None:
    """The profile of this fingerprint, the user's before the machine's; None where there is none."""
    paths = [folder / name_of(here) for folder in (user_folder(environ), *MACHINE) if folder]
    return next((path for path in paths if os.path.isfile(path)), None)  # noqa: PTH113 - Path's raises where it may not look


def shipped(here: Fingerprint) -> Path | None:
    """The profile that gputune brings for this model of GPU; None where it brings none."""
    return next((path for path in _brought() if here.gpu and path.stem == _slug(here.gpu)), None)


def keep(profile: Profile, here: Fingerprint, environ: Mapping[str, str], *, replace: bool = True) -> Path:
    """Cache a profile for the user, to be found by `here`: a fingerprint as it is told without torch. Raises MeasureError where there
    is no place for it, or it cannot be written. Without `replace` one that is there already stays, and is the one.
    """
    path = made(user_folder(environ)) / name_of(here)
    save(profile, path, replace=replace)
    return path


def made(folder: Path | None) -> Path:
    """The user's folder, made where it is not there, for nobody else to read. Raises MeasureError where it cannot be."""
    remedy = "set XDG_CACHE_HOME to a folder that can be written"
    if folder is None:
        raise MeasureError("there is no folder for profiles, since HOME is not set", remedy)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise MeasureError(f"{folder}: {error.strerror}", remedy) from None
    return folder


def user_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's own folder, whether it is there or not; None where neither XDG_CACHE_HOME nor HOME names an absolute one."""
    for name, below in (("XDG_CACHE_HOME", "gputune"), ("HOME", ".cache/gputune")):
        if Path(environ.get(name, "")).is_absolute():
            return Path(environ[name]) / below
    return None


def name_of(fingerprint: Fingerprint) -> str:
    """The file's name: the device for the reader, and a digest of all that the name is to tell apart."""
    told = json.dumps([getattr(fingerprint, key) for key in KEYS])
    return f"{_slug(fingerprint.device or 'unknown')}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.yaml"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]


def _brought() -> Iterator[Path]:
    """Installed they lie in the package; in a source tree beside it."""
    package = Path(__file__).parents[1]
    folder = package / "shipped" if (package / "shipped").is_dir() else package.parent / "profiles"
    yield from sorted(folder.glob("*.yaml"))
