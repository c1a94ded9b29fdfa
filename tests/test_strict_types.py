"""Plain data held against types: as strict as pydantic in its strict mode for JSON, and the first fault with its place."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gputune.checks import Finding
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.profile import Fingerprint
from gputune.settings import Choice
from gputune.strict_types import Wrong, made


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
    with pytest.raises(Wrong) as wrong:
        made(kind, value)
    assert wrong.value.what == expected


@pytest.mark.parametrize(
    ("kind", "data", "fault"),
    [
        (Gap, {"fact": "x"}, "reason: this key is missing"),
        (Gap, {"fact": "x", "reason": "y", "more": 1}, "more: there is no such key"),
        (tuple[Gap, ...], [{"fact": "x", "reason": 1}], "0.reason: text expected, 1 given"),
        (dict[str, tuple[Gap, ...]], {"a": [{"fact": "x", "reason": "y"}, 5]}, "a.1: a mapping expected, 5 given"),
        (dict[Literal["tf32"], int], {"int9": 8}, "int9: 'tf32' expected, \"int9\" given"),
    ],
)
def test_the_place_leads_through_the_data(kind: Any, data: Any, fault: str) -> None:
    with pytest.raises(Wrong) as wrong:
        made(kind, data)
    assert str(wrong.value) == fault


def test_a_whole_number_becomes_a_float_where_only_that_is_wanted() -> None:
    assert [type(value) for value in made(tuple[float, ...], [1, 2.5])] == [float, float]
    assert type(made(int | float, 1)) is int


WORDS = ["bench", "metric", "unit", "samples", "params", "device", "value", "gain", "interval", "reason", "evidence", "check",
         "severity", "message", "remedy", "fact", "gpu", "gpu_count", "cpu_budget"]  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 2.0]) | st.sampled_from(["x", "OK", "ERROR"])
)
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=8)
)
NEARLY = {
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


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from(list(NEARLY)), key=st.sampled_from(WORDS), value=DATA, drop=st.booleans())
def test_it_takes_and_refuses_what_pydantic_does(kind: Any, key: str, value: Any, drop: bool) -> None:
    data = {**NEARLY[kind], key: value}
    if drop:
        del data[key]
    try:
        expected = TypeAdapter(kind).validate_json(json.dumps(data))
    except ValidationError:
        with pytest.raises(Wrong):
            made(kind, data)
    else:
        assert made(kind, data) == expected
