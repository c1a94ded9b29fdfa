"""`gputune show`: a profile, for reading."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def show(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="The profile to show.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show a profile: what was found, what it recommends and why."""
    from gputune.profile import dump_json, load
    from gputune.report import terminal

    found = load(profile)
    if as_json:
        print(dump_json(found), end="")
    else:
        terminal.print_profile(found, sys.stdout)
