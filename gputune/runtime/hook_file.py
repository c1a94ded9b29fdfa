"""A line for one interpreter's site-packages, through which `gputune apply` also reaches it where it ignores PYTHONPATH.

The file is a `.pth`, which Python reads at each start but for `-S`. Its line does nothing unless GPUTUNE_APPLY is set, where the shim
comes by PYTHONPATH anyway, and where gputune has gone. It is written only when asked for: tools that look for malware rightly
look at such files.

Source: Python, module site; PEP 829, by which Python 3.15 deprecates such lines and still runs them.
"""

from __future__ import annotations

from pathlib import Path

from gputune.errors import UsageError
from gputune.host import Host, Unreadable, atomic
from gputune.runtime.environment import SHIM

NAME = "gputune-hook.pth"
OLDEST = (3, 11)

_SCRIPT = Path(__file__).with_name("_site_answers.py")


def line() -> str:
    """The file's text. The shim runs under another name than sitecustomize, and so leaves the interpreter's own one alone."""
    folder, shim = ascii(SHIM), ascii(f"{SHIM}/sitecustomize.py")
    wanted = f'os.environ.get("GPUTUNE_APPLY") and {folder} not in sys.path and os.access({shim}, os.R_OK)'
    code = f'loader.SourceFileLoader("_gputune_start", {shim}).get_code("_gputune_start")'  # from its .pyc, where it has one
    run = f'exec({code}, {{"__name__": "_gputune_start", "__file__": {shim}}})'
    return f"import os, sys, _frozen_importlib_external as loader; {wanted} and {run}\n"


def place(host: Host) -> Path:
    """Where the file of the host's Python belongs. Raises UsageError for one that is too old, or does not answer."""
    try:
        answer = host.ask_python(_SCRIPT, 30.0)
    except Unreadable as error:
        raise UsageError(str(error), "name an interpreter, as in --python .venv/bin/python") from None
    if tuple(answer["version"]) < OLDEST:
        version = ".".join(map(str, answer["version"]))
        raise UsageError(f"{host.python} is Python {version}", "the hook needs 3.11 or newer")
    return Path(answer["folder"]) / NAME


def write(path: Path) -> None:
    """Raises UsageError where it cannot be written."""
    try:
        atomic.write(path, line())
    except OSError as error:
        raise UsageError(f"{path}: not written: {error.strerror}", "run it as the owner of that folder") from None


def remove(path: Path) -> bool:
    """Whether there was one. Raises UsageError where it cannot be removed."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"{path}: not removed: {error.strerror}", "run it as the owner of that folder") from None
    return True
