"""Whether batches are copied into page-locked memory, for a GPU to fetch."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_pin_memory import recommend

HOST = facts_of()


def measured(on: float, off: float, bench: str = "dataloader") -> list[Any]:
    return [
        row(bench, "throughput", rate, kind="transfer", workers=4, pin_memory=value)
        for value, rate in ((True, on), (False, off))
    ]


def test_a_gain() -> None:
    choice = recommend(HOST, measured(130.0, 100.0))
    assert choice.value is True
    assert choice.gain == pytest.approx(1.3, rel=0.01)
    assert choice.reason.startswith(
        "loading large batches through pinned memory and copying them to the GPU ran 1.3 times"
    )
    assert choice.evidence == ("dataloader",)


@pytest.mark.parametrize("on", [100.0, 102.0, 80.0])
def test_no_gain(on: float) -> None:
    choice = recommend(HOST, measured(on, 100.0))
    assert choice.value is False
    assert choice.reason.startswith("no gain: ")


@pytest.mark.parametrize("missing", range(2))
def test_not_measured(missing: int) -> None:
    rows = measured(130.0, 100.0)
    del rows[missing]
    choice = recommend(HOST, rows)
    assert (choice.value, choice.gain) == (False, None)


def test_without_a_gpu_there_is_nothing_to_copy_to() -> None:
    rows = [
        row("dataloader", "throughput", rate, device="cpu", kind="transfer", workers=4, pin_memory=pin)
        for pin, rate in ((True, 9.0), (False, 1.0))
    ]
    choice = recommend(facts_of("cpu-only"), rows)
    assert choice.value is False
    assert "no GPU" in choice.reason


def test_the_users_own_batches_decide_where_they_were_measured() -> None:
    own = [row("dataset", "throughput", rate, kind="dataset", workers=n, batch=8) for n, rate in ((0, 1.0), (4, 3.0))]
    choice = recommend(HOST, measured(100.0, 100.0) + own + measured(130.0, 100.0, "dataset"))
    assert (choice.value, choice.evidence) == (True, ("dataset",))
    assert choice.reason.startswith("loading the dataset's batches through pinned memory")
    assert recommend(HOST, measured(130.0, 100.0) + own).value is False
