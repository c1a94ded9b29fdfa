"""FP32 matmul in TF32: where it gains and really runs, and never on a word of a flag alone."""

from typing import Any

import pytest
from making import final_losses, row
from recorded import facts_of

from gputune.advice.matmul_precision import recommend

H200 = facts_of()


def measured(tf32: float, float32: float, error: float = 2.9e-4, exact_error: float = 1e-6) -> list[Any]:
    return [
        row("precision", "throughput", tf32, dtype="tf32"),
        row("precision", "throughput", float32, dtype="float32"),
        row("precision", "relative_error", error, dtype="tf32"),
        row("precision", "relative_error", exact_error, dtype="float32"),
    ]


def test_a_gain_is_tf32_with_its_price() -> None:
    choice = recommend(H200, measured(405.0, 51.0))
    assert choice.value == "tf32"
    assert choice.gain == pytest.approx(405 / 51, rel=0.01)
    assert choice.interval is not None
    assert choice.interval[0] <= choice.gain <= choice.interval[1]
    assert choice.reason.startswith("TF32 matmul ran at 406 against 51.2 TFLOP/s; relative error 2.9e-04")
    assert choice.evidence == ("precision",)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        *((measured(tf32, 51.0), "no gain: ") for tf32 in (51.0, 52.0, 40.0)),
        (measured(60.0, 51.0, error=1e-6), "TF32 was switched on and did not take effect: NVIDIA_TF32_OVERRIDE or "),
        (measured(405.0, 405.0, exact_error=2.9e-4), "full FP32 was set and TF32 ran: NVIDIA_TF32_OVERRIDE forces it"),
    ],
)
def test_where_tf32_gains_nothing_or_an_override_decides_torchs_default_stays(rows: list[Any], words: str) -> None:
    """NVIDIA_TF32_OVERRIDE=0 makes both run in full FP32, and 1 both in TF32; the errors give it away."""
    choice = recommend(H200, rows)
    assert choice.value == "ieee"
    assert choice.reason.startswith(words)


def test_what_the_accuracy_guard_refused_is_not_recommended_however_fast() -> None:
    choice = recommend(H200, measured(405.0, 51.0) + final_losses("recurrent", 1.0, 1.1, 0.9, tf32=1.5))
    assert choice.value == "ieee"
    assert choice.reason == (
        "the accuracy guard refused it: recurrent: "
        "its final loss was 1.5 instead of FP32's 1, whose seeds scatter by 0.1"
    )
    assert choice.evidence == ("training_step",)


def test_what_the_accuracy_guard_allowed_is() -> None:
    rows = measured(405.0, 51.0) + final_losses("recurrent", 1.0, 1.1, 0.9, tf32=1.01, bfloat16=1.5)
    assert recommend(H200, rows).value == "tf32"


@pytest.mark.parametrize("missing", range(3))
def test_what_was_not_measured_is_left_alone(missing: int) -> None:
    rows = measured(405.0, 51.0)
    del rows[missing]
    choice = recommend(H200, rows)
    assert (choice.value, choice.gain) == ("ieee", None)
    assert choice.reason


def test_on_a_cpu_it_has_no_meaning() -> None:
    rows = [
        row("precision", "throughput", rate, device="cpu", dtype=dtype)
        for dtype, rate in [("tf32", 9.0), ("float32", 1.0)]
    ]
    assert recommend(facts_of("cpu-only"), rows).value == "ieee"
