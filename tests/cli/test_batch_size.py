"""`gputune batch-size` as a user types it."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import making
import pytest
import stand_in
from forked import gputune
from stepping import TRAINING


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("training")
    (made / "train.py").write_text(TRAINING)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train.py:nothing"], 3, "nothing() returned NoneType"),
        (["train.py:missing"], 3, "has no callable missing"),
        (["train.py"], 2, "names no callable"),
        (["other.py:make"], 2, "there is no file other.py"),
        (["train.py:make_training", "--device", "tpu"], 2, "choose from auto, cpu, cuda, cuda:N"),
        (["train.py:make_training", "--start", "0"], 2, "--start"),
        (["train.py:make_training", "--start", "9", "--most", "8"], 2, "nothing lies between"),
        (["train.py:make_training", "--seconds", "nan"], 2, "--seconds"),
    ],
)
def test_what_goes_wrong_is_one_line(folder: Path, tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    env = making.environ(PYTHONPATH=stand_in.torch(tmp_path))
    is_one_line(gputune("batch-size", *arguments, cwd=folder, env=env), code, words)


@pytest.mark.slow
def test_so_it_is_where_the_step_fails(folder: Path) -> None:
    is_one_line(making.gputune("batch-size", "train.py:broken", cwd=folder), 3, "ValueError: wrong shapes (train.py:")


def is_one_line(result: CompletedProcess[str], code: int, words: str) -> None:
    last = result.stderr.splitlines()[-1]
    assert (result.returncode, result.stdout) == (code, "")
    assert words in last
    assert last.startswith("gputune: ")
    assert "Traceback" not in result.stderr


def test_the_help_names_the_verb_and_its_options() -> None:
    assert "batch-size" in gputune("--help").stdout
    text = gputune("batch-size", "--help").stdout
    assert all(option in text for option in ("--device", "--start", "--most", "--seconds", "--json"))
