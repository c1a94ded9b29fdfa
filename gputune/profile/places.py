"""Where profiles are kept, so that `gputune apply auto` finds the one of this machine.

A measured profile is cached under the fingerprint of what it was measured on: in `$XDG_CACHE_HOME/gputune` (else
`~/.cache/gputune`), which `gputune probe` fills, and in /var/lib/gputune and /etc/gputune, which an administrator
fills. A profile that gputune brings is named after its hardware.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gputune.errors import MeasureError
from gputune.profile.document import Fingerprint, Profile
from gputune.profile.keeping import keeping
from gputune.profile.reading import readable
from gputune.profile.writing import save

MACHINE = (Path("/var/lib/gputune"), Path("/etc/gputune"))

KEYS = ("gpu", "compute_capability", "driver", "torch", "cuda", "cpu")
"""The fields that name a cached profile: those that can be read without importing torch, except for counts, which
differ between a container or a rank and its node (a choice that rests on a count is skipped by itself)."""

_REMEDY = "set XDG_CACHE_HOME to a folder that can be written"


def cached(fingerprint: Fingerprint, environ: Mapping[str, str]) -> Path | None:
    """The profile of this fingerprint, the user's before the machine's; None where there is no such file."""
    paths = [folder / file_name(fingerprint) for folder in (user_folder(environ), *MACHINE) if folder]
    return next((path for path in paths if os.path.isfile(path)), None)  # noqa: PTH113 - Path.is_file may raise


def latest(fingerprint: Fingerprint, environ: Mapping[str, str]) -> Profile | None:
    """The cached profile of this fingerprint; None where there is none that can be read."""
    return readable(cached(fingerprint, environ))


def shipped(fingerprint: Fingerprint) -> Path | None:
    """The profile that gputune brings for this model of GPU; None where it brings none."""
    return next((path for path in _shipped_files() if fingerprint.gpu and path.stem == _slug(fingerprint.gpu)), None)


def keep(profile: Profile, fingerprint: Fingerprint, environ: Mapping[str, str], *, replace: bool = True) -> Path:
    """Cache a profile for the user under a fingerprint that was read without torch, and return its path.

    An older one's programs are kept. Without `replace` an existing file stays. Raises MeasureError where the cache has
    no folder or cannot be written.
    """
    path = create_folder(user_folder(environ)) / file_name(fingerprint)
    save(keeping(profile, path), path, replace=replace)
    return path


def create_folder(folder: Path | None) -> Path:
    """Create the user's folder where it is missing, readable by nobody else. Raises MeasureError where that fails."""
    if folder is None:
        raise MeasureError("there is no folder for profiles, since HOME is not set", _REMEDY)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise MeasureError(f"{folder}: {error.strerror}", _REMEDY) from None
    return folder


def user_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's own folder, existing or not; None where neither XDG_CACHE_HOME nor HOME is an absolute path."""
    for name, below in (("XDG_CACHE_HOME", "gputune"), ("HOME", ".cache/gputune")):
        if Path(environ.get(name, "")).is_absolute():
            return Path(environ[name]) / below
    return None


def file_name(fingerprint: Fingerprint) -> str:
    """A profile's file name in the cache: the device, for a reader, and a digest of KEYS."""
    values = json.dumps([getattr(fingerprint, key) for key in KEYS])
    return f"{_slug(fingerprint.device or 'unknown')}-{hashlib.sha256(values.encode()).hexdigest()[:12]}.yaml"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]


def _shipped_files() -> Iterator[Path]:
    """They are in the installed package, or beside it in a source tree."""
    package = Path(__file__).parents[1]
    folder = package / "shipped" if (package / "shipped").is_dir() else package.parent / "profiles"
    yield from sorted(folder.glob("*.yaml"))
