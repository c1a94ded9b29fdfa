"""Where profiles are kept, so that `gputune apply auto` finds the one of this machine.

A measured profile is cached under the fingerprint of what it was measured on: in `$XDG_CACHE_HOME/gputune` (else
`~/.cache/gputune`), which `gputune probe` fills, and in /var/lib/gputune and /etc/gputune, which an administrator
fills. A profile that gputune brings is named after its hardware.

Nobody names these files, so they are taken only where nobody but this user and root can have written them.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from gputune.errors import MeasureError, ProfileError
from gputune.host import trust
from gputune.profile.document import Fingerprint, Profile
from gputune.profile.keeping import with_programs
from gputune.profile.reading import load
from gputune.profile.writing import save

MACHINE = (Path("/var/lib/gputune"), Path("/etc/gputune"))

KEYS = ("gpu", "compute_capability", "driver", "torch", "cuda", "cpu")
"""The fields that name a cached profile: those that can be read without importing torch, except for counts, which
differ between a container or a rank and its node (a choice that rests on a count is skipped by itself)."""

_REMEDY = "set XDG_CACHE_HOME to a folder that can be written"


def found(
    fingerprint: Fingerprint, environ: Mapping[str, str], tell: Callable[[str], None] = lambda line: None
) -> tuple[Path, Profile] | None:
    """The first cached profile of this fingerprint that can be trusted and read; `tell` hears of those passed by."""
    for folder in (user_folder(environ), *MACHINE):
        path = folder / file_name(fingerprint) if folder else None
        profile = path and trusted(path, tell)
        if path and profile:
            return path, profile
    return None


def latest(fingerprint: Fingerprint, environ: Mapping[str, str]) -> Profile | None:
    """The cached profile of this fingerprint; None where there is none that can be trusted and read."""
    return (found(fingerprint, environ) or (None, None))[1]


def trusted(path: Path, tell: Callable[[str], None] = lambda line: None) -> Profile | None:
    """The profile of a file that only this user and root can have written; else None, and `tell` gets the reason."""
    if not os.path.lexists(path):
        return None
    if why := trust.fault(path):
        tell(f"skipped {path}: {why}")
        return None
    try:
        return load(path, tell)
    except ProfileError as error:
        tell(f"skipped {error.message}")
        return None


def shipped(fingerprint: Fingerprint) -> Path | None:
    """The profile that gputune brings for this model of GPU; None where it brings none."""
    package = Path(__file__).parents[1]
    folder = package / "shipped" if (package / "shipped").is_dir() else package.parent / "profiles"
    files = sorted(folder.glob("*.yaml"))
    return next((path for path in files if fingerprint.gpu and path.stem == _slug(fingerprint.gpu)), None)


def keep(profile: Profile, fingerprint: Fingerprint, environ: Mapping[str, str], *, replace: bool = True) -> Path:
    """Cache a profile for the user under a fingerprint that was read without torch, and return its path.
    An older one's programs are kept; without `replace` it stays. One that cannot be trusted or read counts for nothing.
    Raises MeasureError where the cache has no folder, cannot be written, or may be others'.
    """
    path = create_folder(user_folder(environ)) / file_name(fingerprint)
    old = trusted(path)
    if old is None:
        with suppress(OSError):  # what cannot be removed, such as a folder, cannot be replaced either, as is said then
            path.unlink()
    whole = with_programs(profile, old.programs) if old else profile
    save(whole, path, replace=replace, follow=False)
    return path


def create_folder(folder: Path | None) -> Path:
    """Create the user's folder, for the user alone. Raises MeasureError if that fails or others can write to it."""
    if folder is None:
        raise MeasureError("there is no folder for profiles, since HOME is not set", _REMEDY)
    _require_own(folder.parent, above=True)
    try:
        _create(folder)
    except OSError as error:
        raise MeasureError(f"{folder}: {error.strerror}", _REMEDY) from None
    _require_own(folder)
    return folder


def _require_own(folder: Path, *, above: bool = False) -> None:
    if why := trust.fault(folder, above=above):
        raise MeasureError(why, "set XDG_CACHE_HOME to a folder of your own")


def _create(folder: Path) -> None:
    for missing in reversed([path for path in (folder, *folder.parents) if not os.path.lexists(path)]):
        missing.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        is_link = folder.is_symlink()  # it leads to a folder that may have another use
        if status.st_uid == os.geteuid() and status.st_mode & 0o077 and not is_link and folder not in MACHINE:
            os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


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
