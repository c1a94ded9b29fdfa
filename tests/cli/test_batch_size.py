"""`gputune batch-size` as a user types it."""

from pathlib import Path

import making
import pytest
import stand_in
from forked import gputune
from stepping import TRAINING


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train.py:nothing"], 3, "nothing() returned NoneType"),
        (["train.py:broken"], 3, "ValueError: wrong shapes (train.py:"),
        (["train.py"], 2, "names no callable"),
        (["train.py:make_training", "--start", "0"], 2, "--start"),
        (["train.py:make_training", "--seconds", "nan"], 2, "--seconds"),
    ],
)
def test_what_goes_wrong_is_one_line(tmp_path: Path, arguments: list[str], code: int, words: str) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    env = making.environ(PYTHONPATH=stand_in.torch(tmp_path))
    result = gputune("batch-size", *arguments, cwd=tmp_path, env=env)
    last = result.stderr.splitlines()[-1]
    assert (result.returncode, result.stdout) == (code, "")
    assert words in last
    assert last.startswith("gputune: ")
    assert "Traceback" not in result.stderr
