"""The dtype of mixed precision: bfloat16 where it gains, else float16, else none."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.amp_dtype import recommend

H200 = facts_of()


def measured(**rates: float) -> list[Any]:
    errors = {"tf32": 2.9e-4, "float32": 1e-6, "bfloat16": 2.3e-3, "float16": 2.9e-4}
    return [
        measurement
        for dtype, rate in rates.items()
        for measurement in (
            row("precision", "throughput", rate, dtype=dtype),
            row("precision", "relative_error", errors[dtype], dtype=dtype),
        )
    ]


def test_bfloat16_first_since_it_needs_no_scaler() -> None:
    choice = recommend(H200, measured(float32=51.0, tf32=405.0, bfloat16=780.0, float16=800.0))
    assert choice.value == "bfloat16"
    assert choice.gain == pytest.approx(780 / 405, rel=0.01), "over TF32, which the profile recommends"
    assert choice.reason.endswith("no GradScaler needed")


def test_float16_where_only_that_gains() -> None:
    choice = recommend(H200, measured(float32=8.0, bfloat16=3.0, float16=60.0))
    assert choice.value == "float16"
    assert "FP32" in choice.reason
    assert choice.reason.endswith("with a GradScaler")


@pytest.mark.parametrize("rates", [{"bfloat16": 51.0, "float16": 50.0}, {"bfloat16": 20.0}])
def test_no_gain_is_no_mixed_precision(rates: dict[str, float]) -> None:
    choice = recommend(H200, measured(float32=51.0, **rates))
    assert choice.value is None
    assert choice.reason.startswith("no gain: bfloat16 matmul ran ")
    assert choice.gain is not None


@pytest.mark.parametrize("rates", [{}, {"float32": 51.0}, {"bfloat16": 780.0}])
def test_not_measured(rates: dict[str, float]) -> None:
    choice = recommend(H200, measured(**rates))
    assert (choice.value, choice.gain) == (None, None)
    assert choice.reason
