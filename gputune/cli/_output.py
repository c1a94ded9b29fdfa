"""Where a verb writes a profile: said before the work is done that it cannot be, and nothing lost after it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gputune.profile import Profile


def check_writable(target: Path) -> None:
    """Raises UsageError where a file cannot be written there, before a minute is spent on measuring."""
    from gputune.errors import UsageError

    try:
        folder, exists, regular = target.resolve().parent, target.exists(), target.is_file()
    except (OSError, RuntimeError) as error:
        raise UsageError(
            f"-o {str(target)[:100]}: {getattr(error, 'strerror', error)}", "choose another name"
        ) from None
    if target.is_dir():
        raise UsageError(f"-o {target}: is a directory", "name a file in it")
    if exists and not regular:
        raise UsageError(f"-o {target}: is not a regular file", "name one, or print the profile with -o -")
    if not folder.is_dir():
        raise UsageError(f"-o {target}: there is no folder {folder}", f"make it first: mkdir -p {folder}")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"-o {target}: {folder} cannot be written to: {error.strerror}", "choose another place with -o"
        ) from None


def check_folder(option: str, folder: Path) -> None:
    """Raises UsageError where no file can be written into it."""
    from gputune.errors import UsageError

    shown = f"{option} {str(folder)[:100]}"
    try:
        if not folder.is_dir():
            raise UsageError(f"{shown}: there is no such folder", "make it first, or name another one")
        tempfile.TemporaryFile(dir=folder, prefix=".gputune").close()  # hidden, should it have a name at all
    except OSError as error:
        raise UsageError(f"{shown}: cannot be written to: {error.strerror}", "name another folder") from None


def write(found: Profile, target: Path) -> None:
    """Write a profile, or print it for `-`. Raises MeasureError where it cannot be written, and prints it then."""
    from gputune import profile
    from gputune.errors import MeasureError

    if str(target) == "-":
        sys.stdout.write(profile.dump(found))
        return
    try:
        profile.save(found, target)
    except MeasureError:
        # A minute of measuring must not be lost for want of room.
        sys.stdout.write(profile.dump(found))
        raise
