"""The whole command line as typer sees it, without a process for each question."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from gputune import cli


@cache
def command_line() -> Any:
    cli.add_verbs()
    return typer.main.get_command(cli.app)


def contexts() -> dict[str, Any]:
    """The context of every verb and group, by the words after `gputune`."""
    return dict(_below(command_line(), "", "gputune", None))


def _below(command: Any, path: str, name: str, above: Any) -> Iterator[tuple[str, Any]]:
    ctx = command.make_context(name, [], parent=above, resilient_parsing=True)
    yield path, ctx
    for verb, below in getattr(command, "commands", {}).items():
        yield from _below(below, f"{path} {verb}".strip(), verb, ctx)
