"""A line for the user on stderr."""

import sys


def say(line: str) -> None:
    """Write one line after `gputune: `. A closed or full stderr is ignored: the user's program matters more."""
    try:
        if sys.stderr is not None:
            print(f"gputune: {one_line(line)}", file=sys.stderr, flush=True)
    except OSError:
        pass


def one_line(text: str) -> str:
    """The text on one line and without terminal escapes, since parts of it may come from a file."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
