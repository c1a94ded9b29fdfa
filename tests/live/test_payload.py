"""GPUTUNE_APPLY: what goes in comes out, and what is malformed is a ValueError with the reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import H200, profile, program

from gputune import knobs
from gputune.live import payload
from gputune.live.advice import Advice
from gputune.live.models import ModelKey
from gputune.live.payload import MOST_BYTES, Payload, handed_down, parse
from gputune.runtime.deciding import Terms
from gputune.runtime.environment import plan

VALUES = st.dictionaries(st.text(max_size=8), st.one_of(st.booleans(), st.integers(), st.text(max_size=8), st.none()))
ADVICE = st.one_of(st.none(), st.builds(Advice, device=st.just("cpu"), general=VALUES.filter(bool)))


@pytest.mark.slow
@given(st.builds(Payload, settings=VALUES, torch=st.one_of(st.none(), st.text(min_size=1)), advice=ADVICE))
def test_what_goes_in_comes_out(given: Payload) -> None:
    if given.settings or given.advice:
        assert parse(given.text) == given
        assert given.text == parse(given.text).text
    else:
        assert given.text == ""


def test_it_is_canonical() -> None:
    one, other = Payload(settings={"a": 1, "b": 2}), Payload(settings={"b": 2, "a": 1})
    assert one.text == other.text == '{"settings":{"a":1,"b":2}}'


def test_the_version_of_torch_travels_where_a_value_depends_on_it() -> None:
    on_torch, not_on_it = knobs.load("cudnn_benchmark"), knobs.load("matmul_precision")
    assert payload.of({on_torch: True}, "2.11").torch == "2.11"
    assert payload.of({not_on_it: "tf32"}, "2.11").torch is None


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[1]", "1", "null", '"settings"', "{}", '{"settings":1}', '{"settings":{},"advice":1}',
        '{"settings":{},"advice":[1]}', '{"settings":{},"advice":{"general":{}}}',
        '{"settings":{},"advice":{"device":"cpu","general":[1]}}',
        '{"settings":{},"advice":{"device":"cpu","programs":[{"models":[]}]}}',
        '{"settings":{},"advice":{"device":"cpu","programs":{"a":1}}}',
        '{"settings":{},"advice":{"device":"cpu","no_such":1}}',
        '{"settings":{},"advice":{"device":"cpu","loading":"all"}}',
        '{"settings":{},"advice":{"device":"cpu","families":{"mlp":3}}}',
        '{"settings":{},"advice":{"device":"cpu","programs":[{"entry":"a","models":[["A"]],"settings":{}}]}}',
        " " * (MOST_BYTES + 1), "é" * (MOST_BYTES // 2 + 1),
    ],
)  # fmt: skip
def test_what_is_malformed_is_a_value_error_and_nothing_is_handed_down(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(text)
    assert handed_down({"GPUTUNE_APPLY": text}) == Payload()


JSON: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["general", "families", "programs", "loading", "quiet"]), JSON))
def test_whatever_the_advice_it_is_understood_or_a_value_error(data: dict[str, Any]) -> None:
    text = json.dumps({"settings": {}, "advice": {"device": "cpu", **data}})
    try:
        understood = parse(text)
    except ValueError:
        return
    assert isinstance(understood.advice, Advice)


class TestLimit:
    def handed(self, count: int) -> list[str]:
        numbers = [f"{number:02}" for number in range(count)]
        programs = tuple(program(f"train{number}.py", created=f"2026-11-21T12:{number}:00Z") for number in numbers)
        planned = plan(profile(programs=programs), H200, {}, Terms())
        assert len(planned.payload.encode()) <= MOST_BYTES
        advice = parse(planned.payload).advice
        assert advice == planned.advice
        return [tuned.entry for tuned in advice.programs] if advice else []

    def test_how_they_could_be_compared_with_others_is_left_first(self) -> None:
        layers = {f"{number:04x}": 100 for number in range(128)}
        model = ModelKey(class_name="Net", digest="0" * 16, layers=layers)
        programs = tuple(program(f"train{number}.py", models=(model,)) for number in range(12))
        few, many = (plan(profile(programs=some), H200, {}, Terms()) for some in (programs[:3], programs))
        assert [len(one.layers) for one in few.advice.programs] == [1] * 3
        assert [one.layers for one in many.advice.programs] == [()] * 12

    def test_those_that_are_left_are_named(self) -> None:
        planned = plan(profile(programs=tuple(program(f"train{n}.py") for n in range(90))), H200, {}, Terms())
        assert planned.no_room == tuple(f"train{n}.py" for n in range(len(planned.advice.programs), 90))

    def test_all_travel_where_there_is_room_the_newest_first(self) -> None:
        assert self.handed(3) == ["train02.py", "train01.py", "train00.py"]

    def test_the_oldest_are_left_where_there_is_none(self) -> None:
        kept = self.handed(90)
        assert 3 < len(kept) < 90
        assert kept == [f"train{number:02}.py" for number in range(89, 89 - len(kept), -1)]
