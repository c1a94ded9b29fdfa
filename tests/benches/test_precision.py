"""Speed and error of each dtype, and the precision that FP32 really runs in."""

from typing import Any

import pytest
import torch
from loaded import on_cpu, sorted_out

from gputune.advice.matmul_precision import TF32_ERROR
from gputune.benches import _fp32_errors, precision

OPERATIONS = {"matmul", "conv", "conv channels_last", "lstm"}


@pytest.mark.slow
def test_every_dtype_and_its_error(twelve_rounds: Any) -> None:
    here = on_cpu()
    rows: list[Any] = list(precision.measure(here))
    speeds = [row for row in rows if row.metric == "throughput"]
    assert [row.params["dtype"] for row in speeds] == list(here.dtypes)
    assert {(row.unit, row.params["size"]) for row in speeds} <= {("TFLOP/s", size) for size in precision.CPU_SIZES}
    errors = {
        row.params["dtype"]: row.median for row in rows if row.metric == "relative_error" and "dtype" in row.params
    }
    assert 0 < errors["float32"] < 1e-6
    assert all(1e-3 < error < 1e-2 for dtype, error in errors.items() if dtype == "bfloat16")


@pytest.mark.slow
def test_what_fp32_really_runs_in_is_told_for_each_operation_with_the_flags_as_they_were_found() -> None:
    found, _ = sorted_out(precision.measure(on_cpu(seconds=0.1)))
    rows = [row for row in found if "operation" in row.params]
    assert {row.params["operation"] for row in rows} == OPERATIONS
    assert {row.params["flags"] for row in rows} == {"found"}, "setting them concerns a GPU only"
    assert all(0 < row.median < 1e-6 for row in rows)


def test_factors_that_were_rounded_are_found_out() -> None:
    x, w = torch.randn(2, 512, 512, generator=torch.Generator().manual_seed(0))
    rounded = (x.bfloat16().float() @ w.bfloat16().float()).double()
    assert _fp32_errors.relative_error(rounded, x.double() @ w.double()) > TF32_ERROR


@pytest.mark.slow
def test_it_always_looks_at_the_same_numbers_and_leaves_the_users_generator_alone() -> None:
    before = torch.random.get_rng_state()
    assert _fp32_errors.errors("cpu") == _fp32_errors.errors("cpu")
    assert torch.equal(torch.random.get_rng_state(), before)
