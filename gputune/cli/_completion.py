"""What a shell is told when Tab is pressed: typer's own answer, with the values of what takes a closed list.

Shells ask by starting `gputune` without a word and with a variable set, as typer's scripts for them do. With words the
variable means nothing: a program below such a shell may have inherited it.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

import typer
import typer.completion

from gputune import cli
from gputune.cli import _completion_values, _pages
from gputune_start import COMPLETE

A_LIST = "NAME,..."
"""The metavar of options that take several names, separated by commas."""


def answer() -> int:
    """Print what may follow the words that the shell gives; the exit code is for fish. Nothing is said of a failure:
    it would stand in the middle of the line that is typed.
    """
    try:
        return _told()
    except SystemExit as ended:  # fish asks whether there is anything
        return int(ended.code or 0)
    except Exception:
        return 1


def _told() -> int:
    typed = _words()
    if "--" in typed[:-1]:  # a command's own words, of which gputune knows nothing
        return 1
    cli.add_verbs(next((word for word in typed if not word.startswith("-")), None))
    command: Any = typer.main.get_command(cli.app)
    typer.completion.get_completion_inspect_parameters()  # makes typer's shells known
    _add_values(command, "")
    return typer.completion.shell_complete(command, {}, "gputune", COMPLETE, os.environ[COMPLETE])


def _words() -> list[str]:
    """The words behind `gputune` before the one that is being typed, if they are known so far."""
    if "COMP_WORDS" not in os.environ:
        return os.environ.get("_TYPER_COMPLETE_ARGS", "").split()[1:]
    words, at = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    # bash has the three words --option, = and VALUE where one was typed.
    before = [word for word in words[:at] if word != "="]
    words = [*before, *(word.removeprefix("=") for word in words[at : at + 1])]
    os.environ.update(COMP_WORDS="\n".join(words), COMP_CWORD=str(len(before)))
    return words[1:]


def _add_values(command: Any, path: str) -> None:
    """Let typer ask here for the values of what takes a closed list, and say what the help says of a verb."""
    for param in command.params:
        if values := _completion_values.of(path, param.opts[-1] if param.opts[-1].startswith("-") else param.name):
            param.shell_complete = partial(_items, values, param.metavar == A_LIST)
    for verb, below in getattr(command, "commands", {}).items():
        below_path = f"{path} {verb}".strip()
        below.short_help = _pages.PAGES[below_path].short
        _add_values(below, below_path)


def _items(values: Callable[[str], Iterable[str]], is_list: bool, ctx: Any, incomplete: str) -> list[SimpleNamespace]:
    """The values that begin so, in the form that typer prints; of a list, those of its last part."""
    done, comma, begun = incomplete.rpartition(",") if is_list else ("", "", incomplete)
    found = [value for value in values(begun) if value.startswith(begun)]
    return [SimpleNamespace(value=f"{done}{comma}{value}", type="plain", help=None) for value in found]
