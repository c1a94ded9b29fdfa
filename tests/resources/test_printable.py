"""Text for a terminal, and words for a shell."""

import os
import subprocess

import pytest

from gputune.resources.printable import printable, quoted

WORDS = [
    "", "plain", "two words", "it's", '"$HOME" `x` \\', "a\nb", "\n", "\x1b[31m", "'\x1b'", "a\x1b\n", "\t", "\x7f",
    "\u202e", "Grüße", "\udcff", "\\033", "%s%%\x01%d", "\x01'\x02", "\u200b\n\u200b", "\r\n", "-n", "!x!",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Grüße 日本語", "Grüße 日本語"),
        ("\x1b[2J\x07\x7f\x9b", "\\x1b[2J\\x07\\x7f\\x9b"),
        ("\u202e\u2066\u200b\ufeff\U000e0041", "\\u202e\\u2066\\u200b\\ufeff\\U000e0041"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\udcff\x00\u2028\xa0", "\\udcff\\x00\\u2028\\xa0"),
    ],
)
def test_what_cannot_be_seen_is_an_escape(text, shown):
    assert printable(text) == shown


def test_line_breaks_stay_where_they_are_wanted():
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("word", WORDS, ids=ascii)
def test_a_shell_reads_the_same_word(word, shell):
    said = quoted(word, word)
    assert printable(said, keep="\n") == said
    done = subprocess.run([shell, "-c", f"printf '%s|' {said}"], capture_output=True, check=True)
    assert done.stdout == os.fsencode(f"{word}|{word}|")
