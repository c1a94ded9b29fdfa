"""YAML that every reader takes for the same data."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gputune.deploy import manifest

UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.slow
@given(st.lists(UNICODE, max_size=5))
def test_any_text_comes_back(words):
    assert yaml.safe_load(manifest.dump({"command": words, "data": {"text": "\n".join(words)}})) == {
        "command": words,
        "data": {"text": "\n".join(words)},
    }


@pytest.mark.slow
@given(st.lists(st.text(st.sampled_from("ab: -#'\"\\\n\t \r\x85\u2028|>%"), max_size=9), max_size=6))
def test_lines_come_back_to_the_last_character(lines):
    text = "\n".join(lines)
    assert yaml.safe_load(manifest.dump({"profile.yaml": text})) == {"profile.yaml": text}


@pytest.mark.slow
@given(st.dictionaries(UNICODE, UNICODE, max_size=4))
def test_it_is_ascii_whatever_it_says(data):
    assert manifest.dump(data).isascii()


@pytest.mark.parametrize(
    "word",
    ["1e3", "0x1F", "0o17", "017", "1_000", "12:30:45", "1.5", ".5", "+1", "-1", "y", "N", "yes", "Off", "NO", "true",
     "null", "~", "", "=", "<<", "---", "- a", "a: b", "a #b", "*a", "&a", "!a", "%a", "@a", "`a", "[a]", "{a}",
     "2026-11-22", ".inf", "-c"],
)  # fmt: skip
def test_what_some_reader_takes_for_another_thing_is_quoted(word):
    assert manifest.dump([word]).startswith('- "')


def test_many_lines_read_well():
    assert manifest.dump({"a": "one\n  two\n"}) == "a: |\n  one\n    two\n"


def test_a_comment_is_above_the_manifest():
    assert manifest.text("\nOne.\n\n  Two.\n", {"a": "b"}) == "# One.\n#\n#   Two.\na: b\n"


@pytest.mark.parametrize(("amount", "size"), [("512Mi", 512 << 20), ("16Gi", 16 << 30), ("1Ti", 1 << 40)])
def test_memory_in_bytes(amount, size):
    assert manifest.memory_bytes(amount) == size


@pytest.mark.parametrize("amount", ["", "16", "16G", "0Gi", "-1Gi", "1.5Gi", "16 Gi", "16Gi\n", "x", "1" * 9 + "Gi"])
def test_what_is_no_memory_is_refused(amount):
    with pytest.raises(ValueError, match=r".*"):
        manifest.memory_bytes(amount)
