"""All that gputune prints goes through here, but for what rich draws (`report.tables`).

What may come from a file, a variable or a device is printed so that a terminal shows it, and does nothing else.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from gputune.resources.printable import printable

NARROWEST, WIDEST = 20, 10_000
"""Characters of a line: in fewer a table cannot be read, and padded to more it fills disks."""
_NAMES = ("COLUMNS", "LINES", "TERMINAL_WIDTH")
"""The environment variables from which rich and typer take the size of the terminal."""


def say(line: str) -> None:
    """Write one line after `gputune: `. A closed or full stderr is ignored: the user's program matters more."""
    with suppress(OSError):
        show(f"gputune: {one_line(line)}", err=True)


def show(text: str, *, end: str = "\n", err: bool = False) -> None:
    """Print lines, with escapes for what cannot be seen unless programs read them. A closed stream is ignored."""
    stream = sys.stderr if err else sys.stdout
    if stream is not None:
        print(printable(text, keep="\n\t"), end=end, file=stream, flush=True)


def one_line(text: str) -> str:
    """The text on one line, with escapes for what cannot be seen."""
    return printable(" ".join(text.split()))


def as_printed(line: str) -> str:
    """A line of another program's output, as a terminal shows it: its spaces and tabs keep what stands below it in
    place, such as the caret of a SyntaxError. What cannot be seen is escaped.
    """
    return printable(" ".join(line.expandtabs().splitlines()))


def fill_standard_streams() -> None:
    """Open /dev/null for each standard stream that this process was started without, so that no other file takes its
    place. A program that is executed here does not inherit that: it finds the stream closed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):  # it takes the lowest number that is free, which is this one
                os.open(os.devnull, os.O_RDWR)


def no_sizes(environ: Mapping[str, str]) -> list[str]:
    """The variables about a terminal's size that hold none. With them rich and typer fail, or print nothing."""
    return [name for name in _NAMES if name in environ and not _is_size(environ[name])]


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and NARROWEST <= int(text) <= WIDEST
