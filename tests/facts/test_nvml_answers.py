"""NVML's answers are of their types and within bounds, or unreadable."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import RecordedHost, facts_of, fits_its_types

from gputune import checks
from gputune.facts import _nvml_answers
from gputune.host import Unreadable

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=5), one, max_size=3),
    max_leaves=8,
)
CONVERTERS = [
    _nvml_answers.whole, _nvml_answers.positive, _nvml_answers.gpu_count, _nvml_answers.flag, _nvml_answers.text,
    _nvml_answers.watts, _nvml_answers.sequence, _nvml_answers.mask, _nvml_answers.dotted,
    _nvml_answers.one_of(("a", "b")),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("convert", CONVERTERS)
@given(answer=ANYTHING)
def test_any_answer_is_converted_or_unreadable(convert, answer):
    with suppress(Unreadable):
        convert(answer)


@pytest.mark.parametrize(
    ("convert", "answer"),
    [
        (_nvml_answers.whole, 2**64), (_nvml_answers.whole, -1),
        (_nvml_answers.text, "a" * 201), (_nvml_answers.text, "a\n"), (_nvml_answers.text, "\x1b[2J"),
        (_nvml_answers.text, "\udcff"), (_nvml_answers.sequence, [0] * 4097), (_nvml_answers.dotted, 9),
        (_nvml_answers.dotted, (9,)), (_nvml_answers.dotted, (9, 0, 0)), (_nvml_answers.dotted, "90"),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_unreadable(convert, answer):
    with pytest.raises(Unreadable, match="NVML answered"):
        convert(answer)


def test_a_number_too_long_to_write_is_unreadable():
    with pytest.raises(Unreadable, match="without end"):
        _nvml_answers.whole(10**5000)


def test_what_is_within_bounds_is_taken():
    assert _nvml_answers.whole(2**64 - 1) == 2**64 - 1
    assert _nvml_answers.text("a" * 200) == "a" * 200
    assert _nvml_answers.dotted([9, 0]) == "9.0"


@pytest.mark.parametrize("count", [257, 2**32 - 1])
def test_a_count_that_no_machine_has_is_not_believed(count):
    with pytest.raises(Unreadable, match=f"NVML says that there are {count} GPUs"):
        _nvml_answers.gpu_count(count)
    assert _nvml_answers.gpu_count(256) == 256


@pytest.mark.parametrize("call", ["UUID", "PciInfo"])
def test_two_gpus_of_one_name_break_nothing(call):
    host = RecordedHost("nvidia-h200-x8")
    devices = [{**device, call: host.nvml_answers["devices"][0][call]} for device in host.nvml_answers["devices"]]
    facts = facts_of("nvidia-h200-x8", nvml={**host.nvml_answers, "devices": devices})
    assert fits_its_types(facts)
    assert not [one for one in checks.run(facts) if "the check failed" in one.message]
