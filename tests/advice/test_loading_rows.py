"""The parameters of a row of loading, which are written by benches and read from any file."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import row

from gputune.advice._evidence import LoadingParams, loading_rows, params_of

PARAMS = st.builds(
    LoadingParams,
    kind=st.sampled_from(["decoding", "memory", "waiting", "dataset"]),
    workers=st.integers(0, 1024),
    batch=st.integers(1, 1 << 40),
    prefetch_factor=st.none() | st.integers(1, 64),
    sent=st.booleans(),
    step_ms=st.none() | st.floats(0.01, 1e6),
    epoch_batches=st.none() | st.integers(0, 1 << 62),
    same_samples=st.booleans(),
)


@given(PARAMS)
def test_what_a_bench_writes_is_read_back(params: LoadingParams) -> None:
    assert params_of(row("dataset", "throughput", 1.0, **params.params)) == params


def test_defaults_are_left_out() -> None:
    assert LoadingParams(kind="decoding", workers=0).params == {"kind": "decoding", "workers": 0}
    written = LoadingParams(kind="dataset", workers=2, batch=8, sent=False).params
    assert written == {"kind": "dataset", "workers": 2, "batch": 8, "sent": False}


def test_parameters_of_a_later_gputune_are_ignored() -> None:
    assert params_of(row("dataloader", "throughput", 1.0, kind="memory", workers=2, later="x")) == LoadingParams(
        kind="memory", workers=2
    )


def test_verdicts_of_0_1_0_are_read_as_the_observations_they_stood_for() -> None:
    old = {"kind": "dataset", "workers": 0, "batch": 8}
    assert params_of(row("dataset", "throughput", 1.0, **old, alike=True)) == LoadingParams(**old, same_samples=True)
    assert params_of(row("dataset", "throughput", 1.0, **old, single=True)) == LoadingParams(**old, epoch_batches=1)


MISSING = "missing"
STRANGE: dict[str, list[Any]] = {
    "kind": [3, True, MISSING],
    "workers": [MISSING, -1, 1025, 1_000_000, 1 << 70, "four", 0.5, 4.0, True],
    "batch": [MISSING, 0, -8, "x", 8.0],
    "prefetch_factor": [0, 65, "x", True],
    "sent": [0, "no"],
    "step_ms": [0, 0.0, -1.0, "x", True, 1 << 70],
    "epoch_batches": [-1, "x", 1.0],
    "same_samples": [1, "x"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in STRANGE.items() for value in values])
def test_a_row_as_no_bench_writes_it_is_none(name: str, value: object) -> None:
    given: dict[str, Any] = {"kind": "dataset", "workers": 4, "batch": 8, name: value}
    assert params_of(row("dataset", "throughput", 9.0, **{n: v for n, v in given.items() if v != MISSING})) is None


def test_rows_of_another_bench_or_kind_or_of_rate_zero_are_left_out() -> None:
    wanted = row("dataloader", "throughput", 9.0, kind="memory", workers=4)
    others = [
        row("dataset", "throughput", 9.0, kind="memory", workers=1),
        row("dataloader", "latency", 9.0, kind="memory", workers=2),
        row("dataloader", "throughput", 9.0, kind="waiting", workers=3),
        row("dataloader", "throughput", 0.0, kind="memory", workers=5),
    ]
    assert loading_rows([*others, wanted], "dataloader", "memory") == {LoadingParams(kind="memory", workers=4): wanted}
