"""Whether workers are kept from one epoch to the next."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_persistent_workers import recommend

HOST = facts_of()
WORKERS = [
    row("dataloader", "throughput", rate, kind="decode", workers=count) for count, rate in ((0, 100.0), (4, 380.0))
]


def measured(on: float, off: float) -> list[Any]:
    return [
        row("dataloader", "throughput", rate, kind="epochs", persistent_workers=value, epoch_seconds=0.5)
        for value, rate in ((True, on), (False, off))
    ]


def test_a_gain() -> None:
    choice = recommend(HOST, WORKERS + measured(130.0, 100.0))
    assert choice.value is True
    assert choice.gain == pytest.approx(1.3, rel=0.01)
    assert "1.3 times" in choice.reason
    assert choice.evidence == ("dataloader",)


@pytest.mark.parametrize("on", [100.0, 102.0, 80.0])
def test_no_gain(on: float) -> None:
    choice = recommend(HOST, WORKERS + measured(on, 100.0))
    assert choice.value is False
    assert choice.reason.startswith("no gain: ")


@pytest.mark.parametrize("missing", range(2))
def test_not_measured(missing: int) -> None:
    rows = measured(130.0, 100.0)
    del rows[missing]
    choice = recommend(HOST, WORKERS + rows)
    assert (choice.value, choice.gain) == (False, None)


def test_without_workers_there_is_nothing_to_choose() -> None:
    choice = recommend(HOST, measured(130.0, 100.0))
    assert choice.value is False
    assert choice.reason.startswith("no workers")
