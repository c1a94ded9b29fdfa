"""The log of a tuned script, whose end is shown where the script fails."""

from contextlib import suppress
from pathlib import Path

import pytest

from gputune.errors import MeasureError
from gputune.host.kept import temporary_folder
from gputune.trials.start import KEPT, kept_log

SYNTAX_ERROR = """\
  File "train.py", line 3
    total = 1  +  (2
                  ^
SyntaxError: '(' was never closed
"""
TABLE = "step\tloss\n1\t0.5\n"


def test_only_logs_of_gputune_in_its_own_folder_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, temporary = tmp_path / "gputune" / "logs", tmp_path / "tmp"
    users = [f"tune-of-{number}.log" for number in range(30)]
    ours = [f"tune-20260101-0000{number}-train.py-abcdefgh.log" for number in range(10, 40)]
    for folder in (own, temporary):
        folder.mkdir(parents=True)
        for name in (*users, *ours):
            (folder / name).touch()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for environ in ({"XDG_CACHE_HOME": str(tmp_path)}, {}):
        with kept_log(environ, ["python", "train.py"]):
            pass
    assert {one.name for one in temporary.iterdir()} > {*users, *ours}
    left = {one.name for one in own.iterdir()}
    assert left > {*users, *ours[-19:]}
    assert len(left) == len(users) + KEPT


def test_a_temporary_folder_too_deep_for_a_socket_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp/" + "a" * 115)
    with pytest.raises(OSError, match="too long for sockets in it: name another one in TMPDIR"), temporary_folder():
        pass


def shown(output: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with suppress(MeasureError), kept_log({"XDG_CACHE_HOME": str(folder)}, ["python", "train.py"]) as log:
        log.write(output)
        raise MeasureError("train.py: it ended", "look at its log")
    return [line.removeprefix("    ") for line in capsys.readouterr().err.splitlines()]


def test_an_excerpt_keeps_its_indentation_so_that_a_caret_points_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(SYNTAX_ERROR.encode(), tmp_path, capsys) == SYNTAX_ERROR.splitlines()


def test_the_columns_of_an_excerpt_stand_below_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(TABLE.encode(), tmp_path, capsys) == ["step    loss", "1       0.5"]


def test_an_excerpt_does_nothing_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(b"  \x1b]0;title\x07 \xff\n", tmp_path, capsys) == [
        r"  \x1b]0;title\x07 " + "\N{REPLACEMENT CHARACTER}"
    ]
