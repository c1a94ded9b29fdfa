"""Speed and error of each dtype, and the precision that FP32 really runs in, under flags and under
NVIDIA_TF32_OVERRIDE.
"""

import sys
from collections import Counter
from typing import Any

import pytest
from loaded import on_cpu, sorted_out

from gputune.benches import precision
from gputune.facts.gap import Gap

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


@pytest.mark.slow
def test_the_library_reads_the_override_once_so_each_value_has_a_process() -> None:
    rows: list[Any] = list(precision.overridden(on_cpu("thorough")))
    assert Counter((row.params["override"], row.params["flags"]) for row in rows) == {
        (override, flags): len(OPERATIONS) for override in "01" for flags in ("on", "off")
    }
    assert {(row.metric, row.bench, row.unit) for row in rows} == {("relative_error", "precision", "1")}


def test_a_process_that_does_not_answer_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert list(precision.overridden(on_cpu("thorough"))) == [
        Gap(fact="bench.precision", reason=f"the process with NVIDIA_TF32_OVERRIDE={value} did not answer")
        for value in "01"
    ]
