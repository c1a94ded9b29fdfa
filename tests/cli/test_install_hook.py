"""`gputune install-hook`, with stand-ins for interpreters; tests/frameworks uses real ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
from forked import gputune, refusal
from making import environ, executable, python

from gputune.runtime.hook_file import NAME, line, not_reached

Python = Callable[[str], str]


@pytest.fixture
def answering(tmp_path: Path) -> Python:
    def make(version: str) -> str:
        (tmp_path / "packages").mkdir(exist_ok=True)
        answer = f'{{"version": [{version.replace(".", ", ")}], "folder": "{tmp_path}/packages"}}'
        return str(executable(tmp_path / f"python{version}", f"#!/bin/sh\nprintf '%s' '{answer}' >/proc/self/fd/$2\n"))

    return make


@pytest.mark.slow
def test_it_is_written_and_taken_away(answering: Python, tmp_path: Path) -> None:
    python, file = answering("3.12"), tmp_path / "packages" / NAME
    done = gputune("install-hook", "--python", python)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Written to {file}. To remove it: gputune install-hook --python {python} --remove\n"
    assert file.read_text() == line()
    assert gputune("install-hook", "--python", python, "--remove").stdout == f"Removed {file}\n"
    assert not file.exists()
    assert gputune("install-hook", "--python", python, "--remove").stdout == f"Nothing to remove: there is no {file}\n"


@pytest.mark.parametrize(
    ("variables", "folder_there", "installed"),
    [({}, True, False), ({"GPUTUNE_APPLY": "{}"}, True, True), ({"GPUTUNE_APPLY": "{}"}, False, False)],
    ids=["without gputune apply", "below gputune apply", "where gputune has gone"],
)
def test_its_line_does_nothing_but_below_gputune_apply(
    variables: dict[str, str], folder_there: bool, installed: bool
) -> None:
    text = line() if folder_there else line().replace("/shim", "/gone")
    installed_hooks = "any(hasattr(finder, 'gputune') for finder in sys.meta_path)"
    code = f"exec({text!r})\nimport sys; print({installed_hooks}, 'sitecustomize' in sys.modules)"
    assert python("-I", "-S", "-c", code, env=environ(**variables)).stdout == f"{installed} False\n"


@pytest.mark.slow
def test_what_it_reaches_is_not_warned_of(answering: Python, tmp_path: Path) -> None:
    python = answering("3.12")
    commands = [[python, "-I", "train.py"], ["env", "PYTHONPATH=src", python, "train.py"]]
    assert all(map(not_reached, commands))
    assert gputune("install-hook", "--python", python).returncode == 0
    assert not any(map(not_reached, commands))
    assert not_reached([python, "-I", "-S", "train.py"])
    (tmp_path / "packages" / NAME).write_text("import of_another_gputune\n")
    assert all(map(not_reached, commands))


@pytest.mark.parametrize("version", ["3.10", "2.7"])
def test_an_interpreter_that_is_too_old(answering: Python, version: str) -> None:
    said = refusal("install-hook", "--python", answering(version))
    assert said.endswith(f"is Python {version}; the hook needs 3.11 or newer\n")


@pytest.mark.parametrize("python", ["no-such-python", "/bin/false"])
def test_what_is_no_interpreter_is_one_line(python: str) -> None:
    fault = refusal("install-hook", "--python", python)
    assert "name an interpreter, as in --python .venv/bin/python" in fault


def test_a_folder_that_cannot_be_written_is_one_line(answering: Python, tmp_path: Path) -> None:
    python = answering("3.12")
    (tmp_path / "packages").rmdir()
    (tmp_path / "packages").symlink_to("/proc/self")
    assert refusal("install-hook", "--python", python).endswith("; run it as the owner of that folder\n")
