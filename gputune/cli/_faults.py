"""The last errors that gputune met, for `gputune bug-report`: a small file in the user's cache folder.

It is written where a run has failed already, and never by one that does what it was asked to. Where it cannot be
written, or the folder may be others', nothing is kept.
"""

import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from gputune.errors import GputuneError, MeasureError

NAME = "last-errors.json"
MOST = 5
LONGEST = 4000
"""Characters of one error's text, the last of which are kept."""
MOST_BYTES = 1 << 16


def keep(error: Exception) -> None:
    """Add a bug of gputune's, with its traceback, or what kept it from measuring or writing, and forget all but the
    latest. Nothing in it tells who and where.
    """
    is_typers = type(error).__module__.partition(".")[0] in ("click", "typer")
    if isinstance(error, MeasureError) or not (is_typers or isinstance(error, GputuneError | OSError)):
        with suppress(Exception):  # the error itself is what matters
            _keep(error)


def _keep(error: Exception) -> None:
    import traceback

    from gputune.host import atomic
    from gputune.host.shared_text import cleaner
    from gputune.profile import now, places
    from gputune.version import __version__

    verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    # An expected fault says in its words what there is to know.
    told = str(error) if isinstance(error, GputuneError) else "".join(traceback.format_exception(error))
    found = {"when": now(), "gputune": __version__, "verb": verb[:40], "error": told}
    entry = {key: text[-LONGEST:] for key, text in cleaner().all(found).items()}
    path = places.create_folder(places.user_folder(os.environ)) / NAME
    before: list[dict[str, str]] = []
    with suppress(OSError, ValueError):
        before = _entries(path)
    umask = os.umask(0o077)
    try:
        atomic.write(path, json.dumps([*before, entry][-MOST:], indent=1))
    finally:
        os.umask(umask)  # the command of `gputune apply` runs all the same


def latest() -> list[dict[str, str]]:
    """The errors that were kept, the oldest first. Raises OSError or ValueError where they cannot be read."""
    from gputune.host import trust
    from gputune.profile import places

    folder = places.user_folder(os.environ)
    if folder is None or not os.path.lexists(folder / NAME):
        return []
    if why := trust.fault(folder / NAME):
        raise ValueError(why)
    return _entries(folder / NAME)


def _entries(path: Path) -> list[dict[str, str]]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError("it is too large")
    try:
        entries: Any = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
        raise ValueError("it is not what gputune writes")
    return entries


def _is_entry(entry: object) -> bool:
    keys = {"when", "gputune", "verb", "error"}
    return isinstance(entry, dict) and set(entry) == keys and all(isinstance(value, str) for value in entry.values())
