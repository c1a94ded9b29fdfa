"""Where a verb writes a profile. The place is tested before the measuring, whose result is never lost."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gputune.errors import MeasureError, ProfileError, UsageError

if TYPE_CHECKING:
    from gputune.profile import Profile


PROFILE = re.compile(
    rb'\A(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n|---)*(?:schema:|\{\s*"schema"\s*:).*?(?:^gputune:|"gputune"\s*:)',
    re.MULTILINE | re.DOTALL,
)
PAGE = re.compile(rb"<title>[^<]*: gputune</title>")
REPORT = re.compile(rb"^# gputune bug report")
LOOKED_AT = 4096
"""The bytes at the beginning of a file that tell what it is."""


def check_writable(target: Path, option: str = "-o", replaces: re.Pattern[bytes] = PROFILE) -> None:
    """Raises UsageError, which names the `option`, unless the file can be written. What is there and not empty must be
    of the kind that it `replaces`: a script that is named by mistake would be lost.
    """
    try:
        folder, exists, regular = target.resolve().parent, target.exists(), target.is_file()
    except (OSError, RuntimeError) as error:
        fault = getattr(error, "strerror", error)
        raise UsageError(f"{option} {str(target)[:100]}: {fault}", "choose another name") from None
    if target.is_dir():
        raise UsageError(f"{option} {target}: is a directory", "name a file in it")
    if exists and not regular:
        more = ", or print it with -o -" if option == "-o" else ""
        raise UsageError(f"{option} {target}: is not a regular file", f"name a regular file{more}")
    if exists and not _is_of_kind(target, replaces):
        raise UsageError(f"{option} {target}: is another file, which would be lost", "choose another name")
    if not folder.is_dir():
        raise UsageError(f"{option} {target}: the folder {folder} does not exist", f"create it: mkdir -p {folder}")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        fault = f"{option} {target}: {folder} cannot be written to: {error.strerror}"
        raise UsageError(fault, "choose another folder") from None


def earlier(target: Path) -> Profile | None:
    """The profile that the file holds which a verb will write to; None where there is none, or an empty file. Raises
    UsageError as `check_writable` does, and ProfileError for a profile of which something would be lost.
    """
    check_writable(target)
    return _held(target)


def _held(target: Path) -> Profile | None:
    from gputune import profile

    if not target.exists() or not target.stat().st_size:
        return None
    skipped: list[str] = []
    try:
        found = profile.load(target, skipped.append)
    except ProfileError as fault:
        raise ProfileError(f"-o {fault.message}", "correct it, or choose another name") from None
    if skipped:
        raise ProfileError(f"-o {skipped[0]}, which would be lost", "choose another name")
    return found


def _is_of_kind(target: Path, kind: re.Pattern[bytes]) -> bool:
    try:
        with target.open("rb") as file:
            begin = file.read(LOOKED_AT)
    except OSError:  # what cannot be read may be anything
        return False
    return not begin.strip() or kind.search(begin) is not None


def check_folder(option: str, folder: Path) -> None:
    """Raises UsageError unless files can be written into the folder that the option names."""
    shown = f"{option} {str(folder)[:100]}"
    try:
        if not folder.is_dir():
            raise UsageError(f"{shown}: the folder does not exist", "create it, or name another one")
        # The prefix hides the file where the file system cannot do without a name.
        tempfile.TemporaryFile(dir=folder, prefix=".gputune").close()
    except OSError as error:
        raise UsageError(f"{shown}: cannot be written to: {error.strerror}", "name another folder") from None


def write_page(source: Path, target: Path) -> None:
    """Write the profile of the file `source` as a page to `target`, which stays what it was where that fails."""
    from gputune import profile
    from gputune.host import atomic
    from gputune.host.stderr import say
    from gputune.report import page

    if str(target) == "-":
        raise UsageError("--html -: a page is written to a file", "name one, such as --html profile.html")
    check_writable(target, "--html", PAGE)
    found = profile.load(source)
    text = page.text(found, str(source))
    try:
        atomic.write(target.resolve(), text)
    except OSError as error:
        fault = f"--html {target}: not written: {error.strerror}"
        raise MeasureError(fault, "make room, or name another place") from None
    say(f"the page is {target}")


LOCK_SECONDS = 10.0
"""How long another process may hold the lock of a profile, which is written within a moment."""


def write_over(target: Path, made: Callable[[Profile | None], Profile]) -> Profile:
    """Write what `made` returns for the profile that is in the file by now, under a lock: others may have changed it
    since it was read. Return what was written. Raises MeasureError as `write` does, and where something in the file
    would be lost, or `made` raises ProfileError: then it stays, and the result goes beside it. For `-` it is printed on
    stdout.
    """
    from gputune.host.node_lock import node_lock

    if str(target) == "-":
        write(whole := made(None), target)
        return whole
    with ExitStack() as stack:
        with suppress(OSError):  # a file system without locks
            file = target.resolve()
            stack.enter_context(node_lock(file.parent, f".{file.name[:80]}", LOCK_SECONDS))
        try:
            whole = made(_held(target))
        except ProfileError as fault:
            raise _written_beside(target, made(None), fault) from None
        write(whole, target)
    return whole


def _written_beside(target: Path, found: Profile, fault: ProfileError) -> MeasureError:
    from gputune import profile

    beside = target.with_name(f"{target.stem[:80]}-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}{target.suffix}")
    try:
        profile.save(found, beside, replace=False)
    except MeasureError:
        write(found, Path("-"))
        raise
    return MeasureError(f"{fault.message}, and so it stays as it is", f"the result is in {beside}")


def write(found: Profile, target: Path) -> None:
    """Write a profile to a file, or to stdout for `-`. Where the file fails: to stdout, and raise MeasureError."""
    from gputune import profile
    from gputune.host.stderr import show

    if str(target) == "-":
        if sys.stdout is None:
            raise MeasureError("-o -: stdout is closed", "open it, or name a file")
        show(profile.dump(found), end="")
        return
    try:
        profile.save(found, target)
    except MeasureError:
        show(profile.dump(found), end="")
        raise
