"""An option or argument that names a file, a folder or a program, and is empty: a line that names it, and exit code 2.

Whoever adds an option with a text is asked here what an empty one means.
"""

import inspect
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer
from forked import gputune, refusal
from making import environ

from gputune import cli

NOT_NAMES = {
    "apply --only": "no settings were listed",
    "apply --skip": "no settings were listed",
    "apply PROFILE": "the command runs without one: see below",
    "apply CMD": "not found, as in a shell: see below",
    "batch-size --device": "no device, which only torch can tell",
    "check --only": "no checks were listed",
    "check --skip": "no checks were listed",
    "probe --device": "no device, which only torch can tell",
    "probe --only": "no benches were listed",
    "tune --only": "no settings were listed",
}
"""The texts that may be empty, since they name nothing on this machine, and what is meant then."""

USUAL = {"what": "sbatch", "n": "1000", "output": "-", "training": "json:dumps"}
"""What a parameter that must be given is given while another one is empty."""


class Parameter:
    def __init__(self, name: str, hint: Any, default: Any) -> None:
        kind, info = get_args(hint)[:2]
        self.name = name
        self.is_text = {str, Path} & {
            kind,
            *get_args(kind),
            *(one for kind in get_args(kind) for one in get_args(kind)),
        }
        self.is_needed = default is inspect.Parameter.empty or name == "command"
        self.option = None
        if isinstance(info, typer.models.OptionInfo):
            self.option = (info.param_decls or [f"--{name.replace('_', '-')}"])[0]
        self.called = self.option or info.metavar or name.upper()

    def words(self, value: str) -> list[str]:
        return [self.option, value] if self.option else ["--", value] if self.name == "command" else [value]


def _verbs(group: Any, *above: str) -> Iterator[tuple[tuple[str, ...], list[Parameter]]]:
    for command in group.registered_commands:
        function = command.callback
        hints = get_type_hints(function, include_extras=True)
        given = inspect.signature(function).parameters
        verb = command.name or function.__name__
        yield (*above, verb), [Parameter(name, hints[name], given[name].default) for name in given]
    for below in group.registered_groups:
        yield from _verbs(below.typer_instance, *above, below.name)


def _texts() -> dict[str, list[str]]:
    """Each parameter of each verb that takes a text, with a command line on which it is empty."""
    if not cli.app.registered_commands:
        cli.add_verbs()
    lines = {}
    for verb, parameters in _verbs(cli.app):
        for empty in parameters:
            given = [one for one in sorted(parameters, key=_place) if one is empty or one.is_needed]
            words = [one.words("" if one is empty else USUAL.get(one.name, "no-such-file")) for one in given]
            if empty.is_text:
                lines[" ".join((*verb, empty.called))] = [*verb, *chain.from_iterable(words)]
    return lines


def _place(parameter: Parameter) -> int:
    return 0 if parameter.option else 2 if parameter.name == "command" else 1


TEXTS = _texts()


@pytest.mark.parametrize("name", [name for name in TEXTS if name not in NOT_NAMES])
def test_an_empty_one_is_refused(name: str, tmp_path: Path) -> None:
    line = refusal(*TEXTS[name], cwd=tmp_path)
    said = (name.rpartition(" ")[2], "is empty", "there is no such", "no command was given", "the command is missing")
    assert any(words in line for words in said), line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ["check", "--python", ""],
        ["check", "--nfd", ""],
        ["check", "--prometheus", "  "],
        ["status", "--python", ""],
        ["install-hook", "--python", ""],
        ["install-hook", "--remove", "--python", "\t"],
        ["show", ""],
        ["merge", "-o", "-", "no-such-file", ""],
        ["tune", "--profile", "", "--", "true"],
    ],
    ids=" ".join,
)
def test_it_is_taken_for_neither_the_working_folder_nor_for_nothing(words: list[str], tmp_path: Path) -> None:
    assert "it is empty; is the variable set that it comes from?" in refusal(*words, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_may_be_empty_is_there() -> None:
    assert set(NOT_NAMES) <= set(TEXTS)


def test_an_empty_profile_keeps_no_command_from_running(tmp_path: Path) -> None:
    done = gputune("apply", "", "--", "echo", "ran", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.startswith("gputune: PROFILE is empty; ")
    assert done.stderr.endswith("; running echo unchanged\n")
    assert "PROFILE is empty" in refusal("apply", "--strict", "", "--", "echo", "ran", code=78, cwd=tmp_path)


def test_an_empty_command_is_not_found_as_in_a_shell(tmp_path: Path) -> None:
    done = gputune("apply", "auto", "--", "", cwd=tmp_path, env=environ(GPUTUNE_DISABLE="1"))
    assert (done.returncode, done.stdout) == (127, "")


@pytest.mark.parametrize("variable", ["GPUTUNE_PROFILE", "XDG_CACHE_HOME", "GPUTUNE_PROBE"])
def test_an_empty_variable_is_one_that_is_not_set(variable: str, tmp_path: Path) -> None:
    env = environ(HOME=str(tmp_path))
    env.pop("XDG_CACHE_HOME", None)
    with_it, without = (gputune("apply", "auto", "--dry-run", env=one) for one in ({**env, variable: ""}, env))
    assert (with_it.returncode, with_it.stderr) == (without.returncode, without.stderr)
