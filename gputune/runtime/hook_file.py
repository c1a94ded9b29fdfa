"""The `.pth` file of `gputune install-hook`, which lets `gputune apply` reach a Python that ignores PYTHONPATH, or
whose PYTHONPATH was replaced.

Python executes the file's line at every start, except with `-S`. The line does nothing without GPUTUNE_APPLY, where the
shim is on PYTHONPATH anyway, or once gputune was uninstalled. It is written only on request, because malware uses such
files too.

Source: Python, module site; PEP 829, by which Python 3.15 deprecates such lines but still runs them.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gputune.errors import UsageError
from gputune.host import Host, Unreadable, atomic
from gputune.runtime.environment import SHIM
from gputune.runtime.reach import beyond_reach

NAME = "gputune-hook.pth"
OLDEST = (3, 11)
_SOON_SECONDS = 3.0
"""How long a Python may take to say where its packages are, while a command waits for it to start."""

_SCRIPT = Path(__file__).with_name("_site_answers.py")


def line() -> str:
    """The file's text. The shim runs under another name than sitecustomize, so the interpreter's own still runs."""
    folder, shim = ascii(SHIM), ascii(f"{SHIM}/sitecustomize.py")
    wanted = f'os.environ.get("GPUTUNE_APPLY") and {folder} not in sys.path and os.access({shim}, os.R_OK)'
    # get_code takes the compiled .pyc where there is one.
    code = f'loader.SourceFileLoader("_gputune_start", {shim}).get_code("_gputune_start")'
    run = f'exec({code}, {{"__name__": "_gputune_start", "__file__": {shim}}})'
    return f"import os, sys, _frozen_importlib_external as loader; {wanted} and {run}\n"


def place(host: Host, seconds: float = 30.0) -> Path:
    """The path of the file for the host's Python. Raises UsageError where that Python is too old or does not answer."""
    try:
        version, folder = _held(host.ask_python(_SCRIPT, seconds), host.python)
    except Unreadable as error:
        raise UsageError(str(error), "name an interpreter, as in --python .venv/bin/python") from None
    if version < OLDEST:
        raise UsageError(f"{host.python} is Python {'.'.join(map(str, version))}", "the hook needs 3.11 or newer")
    return Path(folder) / NAME


def _held(answer: Mapping[str, Any], python: str) -> tuple[tuple[int, int], str]:
    """The version and the folder of an answer. Raises Unreadable where they are none: any program may answer.

    A relative folder would be one of the working folder's.
    """
    with suppress(UnicodeEncodeError):
        match answer:
            case {"version": [int(major), int(minor)], "folder": str(folder)}:
                is_path = folder.startswith("/") and b"\0" not in os.fsencode(folder)
                if is_path and 0 <= major < 100 and 0 <= minor < 100:
                    return (major, minor), folder
    raise Unreadable(f"{python} answered something else than its version and its folder for packages")


def not_reached(command: Sequence[str]) -> str:
    """Why torch's flags will not be set below a command, as far as its words show, or "". The file may help it."""
    beyond = beyond_reach(command)
    if beyond is None or (beyond.python and _has_file(beyond.python)):
        return ""
    return beyond.why


def _has_file(python: str) -> bool:
    try:
        return place(Host(python=python), _SOON_SECONDS).read_text(encoding="utf-8") == line()
    except (UsageError, OSError, ValueError):
        return False


def write(path: Path) -> None:
    """Write the file. Raises UsageError where that fails."""
    try:
        atomic.write(path, line())
    except OSError as error:
        raise UsageError(f"{path}: not written: {error.strerror}", "run it as the owner of that folder") from None


def remove(path: Path) -> bool:
    """Remove the file; returns whether it existed. Raises UsageError where it cannot be removed."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"{path}: not removed: {error.strerror}", "run it as the owner of that folder") from None
    return True
