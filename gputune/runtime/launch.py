"""Replacing this process by the command, so that exit code and signals are the command's own."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from gputune.host.stderr import say

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""The exit codes that shells use."""


def launch(command: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Replace this process by `command`, found on `environ`'s PATH; on failure print a line and exit 127 or 126."""
    # Python ignores these two, and ignored signals stay ignored across exec: `command | head` would never end.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        # exec refuses a variable without a name, although an environment may contain one.
        os.execvpe(command[0], list(command), {name: value for name, value in environ.items() if name})
    except (FileNotFoundError, NotADirectoryError) as error:
        _end(command[0], error, NOT_FOUND)
    except (OSError, ValueError) as error:
        _end(command[0], error, NOT_EXECUTABLE if command[0] else NOT_FOUND)


def disabled(environ: Mapping[str, str]) -> bool:
    """Whether the user switched gputune off."""
    return environ.get("GPUTUNE_DISABLE") == "1"


def inherited() -> dict[str, str]:
    """The environment with which this process was started.

    In the C locale Python sets LC_CTYPE for itself and its children (PEP 538), which is not meant for the command.
    """
    environ = dict(os.environ)
    try:
        given = Path("/proc/self/environ").read_bytes()
    except OSError:
        return environ
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given.split(b"\0")):
        environ.pop("LC_CTYPE", None)
    return environ


def _end(name: str, error: OSError | ValueError, code: int) -> NoReturn:
    say(f"{name or repr(name)}: {getattr(error, 'strerror', None) or error}")
    sys.exit(code)
