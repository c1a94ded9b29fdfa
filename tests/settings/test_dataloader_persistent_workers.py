"""Whether workers are kept from one epoch to the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_persistent_workers import recommend

HOST = facts_of()
WORKERS = [
    row("dataloader", "throughput", rate, kind="decoding", workers=count) for count, rate in ((0, 100.0), (4, 380.0))
]
OWN = [
    row("dataset", "throughput", rate, kind="dataset", workers=count, batch=8)
    for count, rate in ((0, 100.0), (4, 380.0))
]


def measured(on: float, off: float, bench: str = "dataloader", epoch_seconds: float = 0.5) -> list[Any]:
    params = {"kind": "epochs", "workers": 4, "epoch_seconds": epoch_seconds}
    return [
        row(bench, "throughput", rate, persistent_workers=value, **params) for value, rate in ((True, on), (False, off))
    ]


def test_a_gain() -> None:
    choice = recommend(HOST, WORKERS + measured(130.0, 100.0))
    assert choice.value is True
    assert choice.gain == pytest.approx(1.3, rel=0.01)
    assert choice.reason.startswith("an epoch of 0.5 s with workers kept from the one before ran 1.3 times")
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


def short(rows: list[Any], samples: int) -> list[Any]:
    return [replace(one, samples=one.samples[:samples]) for one in rows]


def test_beside_a_long_epoch_a_few_starts_are_enough_to_say_that_nothing_is_gained() -> None:
    choice = recommend(HOST, WORKERS + short(measured(100.5, 100.0, epoch_seconds=600.0), 3))
    assert (choice.value, choice.gain, choice.evidence) == (False, None, ("dataloader",))
    assert choice.reason == "no gain: to start 4 workers is next to nothing beside an epoch of 600 s"


@pytest.mark.parametrize(("on", "samples"), [(100.5, 2), (130.0, 3)])
def test_a_few_starts_say_nothing_else(on: float, samples: int) -> None:
    choice = recommend(HOST, WORKERS + short(measured(on, 100.0), samples))
    assert (choice.value, choice.reason) == (False, "too few samples in this run to tell")


def test_the_users_own_dataset_decides_where_it_was_measured() -> None:
    synthetic = WORKERS + measured(100.0, 100.0)
    choice = recommend(HOST, synthetic + OWN + measured(130.0, 100.0, "dataset"))
    assert (choice.value, choice.evidence) == (True, ("dataset",))
    assert recommend(HOST, WORKERS + measured(130.0, 100.0) + OWN).value is False
