"""The last line of a tune, and what is said before it."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from making import choices, profile, program, row

from gputune.facts.gap import Gap
from gputune.measurement import Comparison
from gputune.profile import Confirmation, Guard
from gputune.report.programs import answer, json_text, print_program
from gputune.search.combination import DEFAULT, Combination
from gputune.trials.result import TuneResult

GAIN = Comparison(ratio=6.01, low=5.96, high=6.04, pairs=12)
GUARD = Guard(verdict="accepted", steps=100, reason="loss within FP32's own spread", fp32=((1.0, 1.1),), tuned=(1.05,))
TIMES = Confirmation(plain_ms=(102.0, 102.4, 103.0), tuned_ms=(17.0, 17.0, 17.1), cost_seconds=22.2)
FUSED = Combination.of({"fused_optimizer": True})


def tuned(
    gain: Comparison | None = GAIN, guard: Guard = GUARD, times: Confirmation | None = TIMES, **more: Any
) -> TuneResult:
    rows = (
        row("tune", "throughput", 10.0, stage="final"),
        row("tune", "throughput", 60.1, stage="final", fused_optimizer=True),
    )
    made = program(settings=choices({"fused_optimizer": True}), measurements=rows, guard=guard, confirmation=times)
    made = replace(made, gaps=(Gap(fact="channels_last", reason="it has no 2-d convolutions"),))
    return TuneResult(program=made, profile=profile(), combination=FUSED if gain else DEFAULT, gain=gain, **more)


def last_line(found: TuneResult) -> str:
    return answer(found, Path("profile.yaml"), ["python", "train.py"])


NOT_COMPARED = Guard(verdict="off", steps=0)
UNKNOWN = Guard(verdict="unknown", steps=100, reason="no call of backward on a scalar was seen")
SLOWER = replace(TIMES, tuned_ms=(20.0, 20.0, 20.0))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "train.py: 99.65 -> 16.58 ms a step, 6.01 times (5.96 to 6.04) as fast; loss within FP32's own spread; "
             "paid back after 260 steps (0.1 min); gputune apply profile.yaml -- python train.py"),
        ({"gain": None}, "train.py: nothing is to be gained here: torch's defaults are best"),
        ({"gain": None, "refused": {"bfloat16": "x"}}, "torch's defaults are best; what was faster, the guard refused"),
        ({"gain": None, "seeming": (FUSED, 1.828)}, "nothing is certain: fused_optimizer seemed 1.83 times as fast"),
        ({"disturbed": "others used up to 1.2 of 2 CPUs"},
         "probably 6.01 times (5.96 to 6.04) as fast; others used up to 1.2 of 2 CPUs meanwhile, so tune again"),
        ({"guard": NOT_COMPARED}, "; its loss was not compared;"),
        ({"guard": UNKNOWN}, "could not be compared (no call of backward on a scalar was seen)"),
        ({"times": SLOWER}, "but 5.12 times in whole starts, -14 % beyond that"),
        ({"more_memory": 1.5}, "; 1.50 times the memory;"),
    ],
)  # fmt: skip
def test_the_last_line_says_what_is_gained_or_why_nothing_is(more: dict[str, Any], said: str) -> None:
    assert said in last_line(tuned(**more))


def test_a_program_that_trains_nothing_has_calls_and_outputs() -> None:
    guard = Guard(verdict="accepted", steps=20, reason="outputs within 0.3 % of FP32's")
    found = tuned(guard=guard)
    found = replace(found, program=replace(found.program, trains=False))
    assert last_line(found) == (
        "train.py: 99.65 -> 16.58 ms a call, 6.01 times (5.96 to 6.04) as fast; outputs within 0.3 % of FP32's; "
        "paid back after 260 calls (0.1 min); gputune apply profile.yaml -- python train.py"
    )
    off = replace(found, program=replace(found.program, guard=Guard(verdict="off", steps=0)))
    assert "; its outputs were not compared;" in last_line(off)


def test_steps_that_wait_for_their_data() -> None:
    stream = io.StringIO()
    print_program(tuned(waits=0.964), stream)
    assert "its steps wait for data for 96 % of their time" in stream.getvalue()
    print_program(tuned(waits=0.01), quiet := io.StringIO())
    assert "wait for data" not in quiet.getvalue()


def test_what_was_tried_and_what_was_not() -> None:
    stream = io.StringIO()
    print_program(tuned(refused={"bfloat16": "its loss is no number from step 3 on"}), stream)
    text = stream.getvalue()
    assert "fused_optimizer" in text
    assert "6.01x" in text
    assert "not tried: channels_last (it has no 2-d convolutions)" in text
    assert "refused by the guard: bfloat16 (its loss is no number from step 3 on)" in text
    assert "Mean loss of 100 steps" in text


def test_how_long_the_gpu_works_for_a_step() -> None:
    result = tuned()
    rows = [replace(one, conditions={"device_ms": 12.3}) for one in result.program.measurements]
    print_program(replace(result, program=replace(result.program, measurements=tuple(rows))), stream := io.StringIO())
    assert "GPU, ms" in stream.getvalue()
    assert "12.3" in stream.getvalue()
    print_program(result, untraced := io.StringIO())
    assert "GPU, ms" not in untraced.getvalue()


def test_as_json_it_does_not_tell_who() -> None:
    gap = Gap(fact="x", reason="cannot read https://ann:s3cret@example.org/x and /home/ann/x")
    text = json_text(replace(tuned().program, gaps=(gap,)))
    assert '"entry": "train.py"' in text
    assert "cannot read https://example.org/x and /home/USER/x" in text
