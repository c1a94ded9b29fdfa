"""Text on lines of a width."""

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gputune.report.fitting import clipped, command, cut, listed, shortened, told_apart, wrap

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=300)


def test_lines_after_the_first_are_indented() -> None:
    assert wrap("one two three four", 10) == ["one two", "    three", "    four"]


def test_a_word_that_fits_on_no_line_is_broken() -> None:
    assert wrap("a " + "b" * 12, 8) == ["a", "    bbbb", "    bbbb", "    bbbb"]


ARMS = ("bfloat16 + compile + fused_optimizer + tf32", "bfloat16 + compile + fused_optimizer + tf32 + 8 workers")


def test_a_name_is_cut_in_its_middle() -> None:
    assert [shortened(one, 31) for one in ARMS] == [
        "bfloat16 + com...timizer + tf32",
        "bfloat16 + com...32 + 8 workers",
    ]
    assert shortened("日本語の部分", 9) == "日...分"
    assert shortened("short", 31) == "short"


def test_names_that_would_be_cut_to_the_same_are_shown_from_where_they_differ() -> None:
    names = [f"{'a' * 20}{middle}{'z' * 20}" for middle in "xy"]
    assert list(told_apart(names, 20).values()) == ["...xzzzz...zzzzzzzz", "...yzzzz...zzzzzzzz"]


@given(st.lists(st.text("ab ", max_size=30), unique=True, max_size=5), st.integers(8, 30))
def test_what_is_shortened_keeps_to_its_width(names: list[str], width: int) -> None:
    assert all(len(one) <= width for one in told_apart(names, width).values())


def test_what_has_no_room_is_cut() -> None:
    assert cut("  a b\nc", 80) == "  a b c"
    assert cut("one two three", 10) == "one two..."
    assert clipped("one two three four", 10, 2) == ["one two", "    thr..."]


def test_as_many_names_as_there_is_room_for() -> None:
    names = ["apple", "banana", "cherry"]
    assert listed("fruit:", names, 80) == ["fruit: apple, banana, cherry"]
    assert listed("fruit:", names, 25) == ["fruit: apple and 2 more"]
    assert listed("fruit:", names, 17) == ["fruit: 3, as ..."]
    assert listed("fruit:", [], 80) == []


@given(TEXT, st.integers(20, 100))
def test_no_line_is_wider_than_asked(text: str, width: int) -> None:
    for lines in (wrap(text, width), [cut(text, width)], listed("these:", [text] * 3, width), clipped(text, width, 2)):
        assert all(cell_len(line) <= width for line in lines)
        assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("long", ["p" * 300, "/".join(["folder name"] * 5)])
def test_a_command_goes_on_behind_backslashes(long: str) -> None:
    words = ["printf", "%s|", "--option", "a b", long, "--", "last"]
    lines = command(words, 80, "a comment")
    assert lines
    assert max(map(len, lines)) <= 80
    said = subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True, check=True).stdout
    assert said.split("|")[:-1] == words[2:]


def test_a_command_that_no_line_can_hold_is_none() -> None:
    assert command(["show", "two words " * 20], 80) is None
    assert command(["show", "line\nbreak"], 80) is None


@pytest.mark.slow
@given(st.lists(TEXT, min_size=1, max_size=5), st.integers(40, 100))
def test_a_command_is_none_or_within_the_width(words: list[str], width: int) -> None:
    lines = command(["gputune", *words], width) or []
    assert all(cell_len(line) <= width for line in lines)
    if len(lines) == 1 and all(word.isprintable() for word in words):
        assert shlex.split(lines[0]) == ["gputune", *words]
