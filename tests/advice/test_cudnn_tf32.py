"""FP32 convolutions in TF32: torch's default, left unless full FP32 is the faster one."""

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.advice.cudnn_tf32 import recommend

H200 = facts_of()


def measured(tf32: float, float32: float) -> list[Any]:
    return [
        row("conv", "throughput", tf32, dtype="tf32", channels=128, channels_last=True),
        row("conv", "throughput", float32, dtype="float32", channels=128, channels_last=True),
        row("conv", "relative_error", 2.9e-4, dtype="tf32"),
    ]


@pytest.mark.parametrize(("tf32", "value"), [(300.0, True), (51.0, True), (49.0, True), (40.0, False)])
def test_torchs_default_stays_unless_full_fp32_is_faster(tf32: float, value: bool) -> None:
    choice = recommend(H200, measured(tf32, 50.0))
    assert choice.value is value
    assert choice.gain == pytest.approx(50 / tf32, rel=0.01)
    assert choice.reason.startswith("torch's default: full FP32 " if value else "full FP32 convolution ran at ")
    assert choice.reason.endswith("relative error 2.9e-04") is value


def test_an_override_that_forbids_tf32_is_told_by_the_error() -> None:
    rows = [*measured(50.0, 50.0)[:2], row("conv", "relative_error", 4.3e-7, dtype="tf32")]
    choice = recommend(H200, rows)
    assert choice.value is True
    assert "NVIDIA_TF32_OVERRIDE" in choice.reason


@pytest.mark.parametrize("missing", range(2))
def test_not_measured_is_torchs_default(missing: int) -> None:
    rows = measured(40.0, 50.0)
    del rows[missing]
    choice = recommend(H200, rows)
    assert (choice.value, choice.gain) == (True, None)
