"""Files that are none, or have no end, where a verb reads one: a line, at once and in little memory."""

import os
from pathlib import Path

import pytest
from forked import refusal


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "a\nb").write_text("1 2 3 4 5\n")
    return tmp_path


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full", "/proc/self/mem", "sparse", ".", "a\nb", "a/b"])
@pytest.mark.parametrize("words", [["probe", "-o", "-", "--shapes"], ["show"], ["merge", "-o", "-"]], ids=" ".join)
def test_one_line_says_so(words: list[str], name: str, odd: Path) -> None:
    refusal(*words, name, cwd=odd)


@pytest.mark.parametrize("words", [["show"], ["merge", "-o", "-"]], ids=" ".join)
def test_a_pipe_without_a_writer_is_not_waited_for(words: list[str], odd: Path) -> None:
    assert "pipe: is not a regular file" in refusal(*words, "pipe", cwd=odd)
