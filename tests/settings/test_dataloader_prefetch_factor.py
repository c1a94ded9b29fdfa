"""How many batches a worker prepares ahead; none is torch's own number."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_prefetch_factor import recommend

HOST = facts_of()
WORKERS = [
    row("dataloader", "throughput", rate, kind="decoding", workers=count) for count, rate in ((0, 100.0), (4, 380.0))
]


def own(prefetch_factor: int) -> list[Any]:
    """The user's dataset, of which shared memory holds so many batches ahead a worker."""
    ahead = {"prefetch_factor": prefetch_factor, "batch": 8}
    return [
        row("dataset", "throughput", 100.0, kind="dataset", workers=0, batch=8),
        row("dataset", "throughput", 380.0, kind="dataset", workers=4, **ahead),
        row("dataset", "throughput", 100.0, kind="dataset", workers=1, **ahead | {"prefetch_factor": 2}),
    ]


def measured(on: float, off: float, bench: str = "dataloader") -> list[Any]:
    return [
        row(bench, "throughput", rate, kind="prefetch", workers=4, prefetch_factor=value)
        for value, rate in ((4, on), (2, off))
    ]


def test_a_gain() -> None:
    choice = recommend(HOST, WORKERS + measured(130.0, 100.0))
    assert choice.value == 4
    assert choice.gain == pytest.approx(1.3, rel=0.01)
    assert "1.3 times" in choice.reason
    assert choice.evidence == ("dataloader",)


@pytest.mark.parametrize("on", [100.0, 102.0, 80.0])
def test_no_gain(on: float) -> None:
    choice = recommend(HOST, WORKERS + measured(on, 100.0))
    assert choice.value is None
    assert choice.reason.startswith("no gain: ")


@pytest.mark.parametrize("missing", range(2))
def test_not_measured(missing: int) -> None:
    rows = measured(130.0, 100.0)
    del rows[missing]
    choice = recommend(HOST, WORKERS + rows)
    assert (choice.value, choice.gain) == (None, None)


def test_without_workers_there_is_nothing_to_choose() -> None:
    choice = recommend(HOST, measured(130.0, 100.0))
    assert choice.value is None
    assert choice.reason.startswith("no workers")


def test_one_where_shared_memory_holds_no_more_batches_of_the_dataset() -> None:
    choice = recommend(HOST, WORKERS + measured(130.0, 100.0) + own(1))
    assert (choice.value, choice.gain, choice.evidence) == (1, None, ("dataset",))
    assert choice.reason == "/dev/shm holds no more of the dataset's batches"


def test_the_users_own_dataset_decides_where_it_was_measured() -> None:
    choice = recommend(HOST, WORKERS + measured(100.0, 100.0) + own(2) + measured(130.0, 100.0, "dataset"))
    assert (choice.value, choice.evidence) == (4, ("dataset",))
    assert recommend(HOST, WORKERS + measured(130.0, 100.0) + own(2)).value is None
