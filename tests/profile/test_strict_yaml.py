"""The part of YAML that a profile needs: what it means, and what it refuses with the line."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.profile.limits import DEEPEST, Malformed
from gputune.profile.strict_text import parse_yaml as parse
from gputune.profile.strict_text import plain

PRINTABLE = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff"))
"""What YAML lets stand in a file as it is, in every language."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | PRINTABLE,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(PRINTABLE.filter(lambda key: key != "<<"), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None), ("~", None), ("", None), ("true", True), ("false", False),
        ("0", 0), ("-7", -7), ("9223372036854775807", 2**63 - 1),
        ("1.5", 1.5), ("-0.0", -0.0), ("1e5", 1e5), ("1.0e-7", 1e-7), ("2E+3", 2e3),
    ],
)  # fmt: skip
def test_what_an_unquoted_word_means(text: str, value: object) -> None:
    assert plain(text) == value
    assert type(plain(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    ["no", "yes", "on", "off", "y", "Null", "NULL", "True", "TRUE", "1:30", "089", "012", "0x1f",
     "0o17", "0b1", "1_000",
     "+1", ".5", "5.", "1.0e", "inf", ".inf", "-.inf", ".nan", "NaN", "2026-11-21",
     "2026-11-21T12:00:00Z", "=", "1.10.2",
     "1e555", "1e5555"],
)  # fmt: skip
def test_everything_else_is_text(text: str) -> None:
    assert plain(text) == text
    assert parse(f"key: {text}") == {"key": text}


def test_quoted_words_are_text() -> None:
    parsed = parse("a: 'true'\nb: \"1\"\nc: ''\nd: '~'\ne: |\n  1\n")
    assert parsed == {"a": "true", "b": "1", "c": "", "d": "~", "e": "1\n"}


@pytest.mark.slow
@given(JSON)
def test_json_means_what_it_does_elsewhere(value: Any) -> None:
    assert parse(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.slow
@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(Malformed):
        parse(text)


@pytest.mark.parametrize("empty", ["", "\n\n", "# only a comment\n", "---\n", "---\n...\n"])
def test_an_empty_document_is_none(empty: str) -> None:
    assert parse(empty) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' occurs twice"),
        ("a: {b: 1, b: 2}\n", "line 1: the key 'b' occurs twice"),
        ("a: &x 1\n", "line 1: anchors and aliases are not allowed"),
        ("a: 1\nb: *x\n", "line 2: anchors and aliases are not allowed"),
        ("&x a: 1\n", "line 1: anchors and aliases are not allowed"),
        ("a:\n  <<: {b: 1}\n", "line 2: merges are not allowed"),
        ("a: !mine {}\n", "line 1: tags are not allowed (!mine)"),
        ("true: a\n", "line 1: a key must be text, not True"),
        ("~: a\n", "line 1: a key must be text, not None"),
        ("a: [1, 2\n", "line 2: "),
        ("a: b: c\n", "line 1: mapping values are not allowed"),
        ("a: \x1b[31m\n", "not YAML: "),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, fault: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse(text)
    assert str(refused.value).startswith(fault)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_bounded(opening: str) -> None:
    started = time.process_time()
    with pytest.raises(Malformed, match=f"nested more than {DEEPEST} deep"):
        parse(opening * 50_000)
    assert time.process_time() - started < 2


def test_as_deep_as_allowed() -> None:
    assert parse("[" * DEEPEST + "]" * DEEPEST) is not None
    with pytest.raises(Malformed):
        parse("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1))
