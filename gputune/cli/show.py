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
    from gputune.profile import load
    from gputune.report import json, terminal

    found = load(profile)
    if as_json:
        print(json.profile(found))
    else:
        terminal.print_profile(found, sys.stdout)
