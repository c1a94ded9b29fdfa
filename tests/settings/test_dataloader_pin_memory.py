"""Whether batches are copied into page-locked memory, for a GPU to fetch."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_pin_memory import recommend

HOST = facts_of()


def measured(on: float, off: float) -> list[Any]:
    return [
        row("dataloader", "throughput", rate, kind="transfer", pin_memory=value)
        for value, rate in ((True, on), (False, off))
    ]


def test_a_gain() -> None:
    choice = recommend(HOST, measured(130.0, 100.0))
    assert choice.value is True
    assert choice.gain == pytest.approx(1.3, rel=0.01)
    assert "1.3 times" in choice.reason
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
        row("dataloader", "throughput", rate, device="cpu", kind="transfer", pin_memory=pin)
        for pin, rate in ((True, 9.0), (False, 1.0))
    ]
    choice = recommend(facts_of("cpu-only"), rows)
    assert choice.value is False
    assert "no GPU" in choice.reason
