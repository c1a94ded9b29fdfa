"""Command lines of gputune's in a text, held against the command line itself."""

import shlex
from typing import Any

import typer

from gputune import cli


def parsed(line: str) -> dict[str, Any]:
    """What a command line of gputune's asks for, as typer reads it. Raises where it does not understand it."""
    if not cli.app.registered_commands:
        cli.add_verbs()
    command: Any
    command, words = typer.main.get_command(cli.app), shlex.split(line, comments=True)[1:]
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    asked: dict[str, Any] = command.make_context(command.name, words).params
    return asked
