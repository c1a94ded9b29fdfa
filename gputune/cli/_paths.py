"""Parsers of options and arguments that name a file, a folder or a program. An empty one is refused.

Most often it comes from a variable that is not set. Python takes an empty path for the working folder, and an option
that is empty for one that was not given, so that something would be written where nobody meant it to be.
"""

from pathlib import Path

import typer


def name(given: str) -> str:
    """The name as it was given. Raises BadParameter, to which typer adds the option, where it is empty or blank."""
    if not given.strip():
        raise typer.BadParameter("it is empty; is the variable set that it comes from?")
    return given


def path(given: str) -> Path:
    """As `name`, for a path."""
    return Path(name(str(given)))
