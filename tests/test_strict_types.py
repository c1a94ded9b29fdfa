"""Plain data held against types: what is refused, with its place, and a JSON Schema that says the same."""

from dataclasses import dataclass, make_dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputune.advice import Choice
from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.knobs import Value
from gputune.measurement import Measurement
from gputune.profile import Fingerprint
from gputune.strict_types import Mismatch, convert, schema, unknown, written


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (bool, 1, "true or false expected, 1 given"),
        (int, True, "a whole number expected, true given"),
        (int, 1.0, "a whole number expected, 1.0 given"),
        (float, True, "a number expected, true given"),
        (float, "1", 'a number expected, "1" given'),
        (str, None, "text expected, null given"),
        (int | None, "x", 'a whole number or null expected, "x" given'),
        (str | int | float | bool, [1], "text or a whole number or a number or true or false expected, [1] given"),
        (Literal["a"], "b", "'a' expected, \"b\" given"),
        (Literal["a", "b", "c"] | None, 1, "'a', 'b' or 'c' or null expected, 1 given"),
        (tuple[float, float], [1.0], "a list of 2 expected, [1.0] given"),
        (tuple[str, ...], "conv", 'a list expected, "conv" given'),
        (dict[str, int], [], "a mapping expected, [] given"),
        (str, ["x" * 100], f'text expected, ["{"x" * 55}... given'),
    ],
)
def test_what_was_expected_and_what_was_given(kind: Any, value: Any, expected: str) -> None:
    with pytest.raises(Mismatch) as mismatch:
        convert(kind, value)
    assert mismatch.value.fault == expected


@pytest.mark.parametrize(
    ("kind", "data", "fault"),
    [
        (Gap, {"fact": "x"}, "reason: this key is missing"),
        (Gap, {"fact": "x", "reason": "y", "more": 1}, "more: there is no such key"),
        (tuple[Gap, ...], [{"fact": "x", "reason": 1}], "0.reason: text expected, 1 given"),
        (dict[str, tuple[Gap, ...]], {"a": [{"fact": "x", "reason": "y"}, 5]}, "a.1: a mapping expected, 5 given"),
        (tuple[tuple[int, ...], ...], [[1], [2, "x"]], '1.1: a whole number expected, "x" given'),
        (
            dict[Literal["tf32"], dict[str, Value]],
            {"tf32": {"x": 0.5}},
            "tf32.x: true or false or a whole number or text or a mapping or null expected, 0.5 given",
        ),
        (dict[Literal["tf32"], int], {"int9": 8}, "int9: 'tf32' expected, \"int9\" given"),
    ],
)
def test_the_place_leads_through_the_data(kind: Any, data: Any, fault: str) -> None:
    with pytest.raises(Mismatch) as mismatch:
        convert(kind, data)
    assert str(mismatch.value) == fault


def test_a_whole_number_becomes_a_float_where_only_that_is_wanted() -> None:
    assert [type(value) for value in convert(tuple[float, ...], [1, 2.5])] == [float, float]
    assert type(convert(int | float, 1)) is int


@dataclass(frozen=True)
class Node:
    """A node."""

    rows: tuple[Gap, ...]
    by_name: dict[str, Gap | None]
    """Each row
    again.
    """


def test_keys_that_no_dataclass_has_are_found_at_any_depth() -> None:
    gap = {"fact": "x", "reason": "y", "new": 1}
    data = {"rows": [gap, 5], "by_name": {"a": gap, "b": None}, "newer": {}}
    assert list(unknown(Node, data)) == [("rows", "0", "new"), ("by_name", "a", "new"), ("newer",)]
    assert list(unknown(Node, [])) == []


def test_a_schema_defines_each_dataclass_once() -> None:
    described = schema(Node)
    assert list(described["$defs"]) == ["Gap"]
    assert described["description"] == "A node."
    assert described["properties"]["rows"] == {"title": "Rows", "type": "array", "items": {"$ref": "#/$defs/Gap"}}
    assert described["properties"]["by_name"]["additionalProperties"]["anyOf"][1] == {"type": "null"}
    assert (described["required"], described["additionalProperties"]) == (["rows", "by_name"], False)


def test_a_schema_says_what_stands_below_a_field() -> None:
    assert schema(Node)["properties"]["by_name"]["description"] == "Each row\nagain."
    assert "description" not in schema(Node)["properties"]["rows"]


def test_a_dataclass_without_words_or_without_source_is_described_without() -> None:
    made = make_dataclass("Made", [("name", str)])
    assert schema(made)["properties"] == {"name": {"title": "Name", "type": "string"}}
    assert "description" not in schema(made)


def test_what_is_written_has_every_key_and_may_get_more() -> None:
    described = written(Node)["$defs"]["Gap"]
    assert (described["required"], described["additionalProperties"]) == (["fact", "reason", "cause"], True)
    assert schema(Node)["$defs"]["Gap"]["required"] == ["fact", "reason"]
    assert written(Node)["additionalProperties"] is True


WORDS = ["bench", "metric", "unit", "samples", "params", "device", "value", "gain", "interval",
         "reason", "evidence", "check",
         "severity", "message", "remedy", "fact", "gpu", "gpu_count", "cpu_budget"]  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 2.5]) | st.sampled_from(["x", "OK", "ERROR"])
)
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=8)
)
VALID = {
    Choice: {"value": True, "gain": 1.5, "interval": [1.0, 2], "reason": "x", "evidence": ["conv"]},
    Finding: {"check": "x", "severity": "WARNING", "message": "x", "remedy": "x"},
    Fingerprint: {"gpu": None, "gpu_count": 1, "cpu_budget": 2},
    Measurement: {
        "bench": "b",
        "metric": "m",
        "unit": "u",
        "samples": [1, 2.5],
        "params": {"a": 1, "b": True},
        "device": "cpu",
    },
}


@pytest.mark.cluster
@settings(max_examples=300)
@given(kind=st.sampled_from(list(VALID)), key=st.sampled_from(WORDS), value=DATA, drop=st.booleans())
def test_the_schema_allows_what_is_read_and_nothing_else(kind: Any, key: str, value: Any, drop: bool) -> None:
    from jsonschema import Draft202012Validator

    data = {**VALID[kind], key: value}
    if drop:
        del data[key]
    allowed = Draft202012Validator(schema(kind)).is_valid(data)
    if not hasattr(kind, "__post_init__"):  # whose rules between fields no schema has
        assert is_read(kind, data) == allowed
    elif is_read(kind, data):
        assert allowed


def is_read(kind: Any, data: Any) -> bool:
    try:
        convert(kind, data)
    except Mismatch:
        return False
    return True
