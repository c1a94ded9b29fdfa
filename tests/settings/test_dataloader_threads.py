"""How many threads each worker computes with; none is torch's own, which is one."""

from __future__ import annotations

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings.dataloader_threads import recommend

HOST = facts_of(affinity=range(16))


def loaded(workers: int, bench: str = "dataset") -> list[Any]:
    """A dataset for which so many workers are the best."""
    kind = "dataset" if bench == "dataset" else "decoding"
    rates = {0: 100.0, workers: 380.0 if workers else 100.0, 32: 90.0}
    return [row(bench, "throughput", rate, kind=kind, workers=count, batch=8) for count, rate in rates.items()]


def measured(more: float, single: float, bench: str = "dataset", threads: int = 4) -> list[Any]:
    return [
        row(bench, "throughput", rate, kind="threads", workers=4, threads=count)
        for count, rate in ((1, single), (threads, more))
    ]


@pytest.mark.parametrize("bench", ["dataset", "dataloader"])
def test_a_gain(bench: str) -> None:
    choice = recommend(HOST, loaded(4, bench) + measured(130.0, 100.0, bench))
    assert choice.value == 4
    assert choice.gain == pytest.approx(1.3, rel=0.01)
    assert choice.reason.startswith("loading with 4 threads in each worker ran 1.3 times")
    assert choice.evidence == (bench,)


@pytest.mark.parametrize("more", [100.0, 102.0, 80.0])
def test_no_gain(more: float) -> None:
    choice = recommend(HOST, loaded(4) + measured(more, 100.0))
    assert choice.value is None
    assert choice.reason.startswith("no gain: ")


@pytest.mark.parametrize(
    ("cpus", "workers", "reason"),
    [
        (4, 4, "4 workers and 4 CPUs: one thread for each"),
        (7, 4, "4 workers and 7 CPUs: one thread for each"),
        (1, 1, "1 worker and 1 CPU: one thread for each"),
        (2, 4, "4 workers and 2 CPUs: one thread for each"),
    ],
)
def test_only_where_cpus_are_idle(cpus: int, workers: int, reason: str) -> None:
    choice = recommend(facts_of(affinity=range(cpus)), loaded(workers) + measured(130.0, 100.0))
    assert (choice.value, choice.gain, choice.reason) == (None, None, reason)


def test_cpus_are_idle_from_two_for_each_worker_on() -> None:
    assert recommend(facts_of(affinity=range(8)), loaded(4) + measured(130.0, 100.0, threads=2)).value == 2


@pytest.mark.parametrize("missing", range(2))
def test_not_measured(missing: int) -> None:
    rows = measured(130.0, 100.0)
    del rows[missing]
    choice = recommend(HOST, loaded(4) + rows)
    assert (choice.value, choice.gain, choice.reason) == (None, None, "not measured in this run's budget")


def test_what_was_measured_of_other_samples_does_not_count() -> None:
    assert recommend(HOST, loaded(4) + measured(130.0, 100.0, "dataloader")).value is None


def test_without_workers_there_is_nothing_to_choose() -> None:
    choice = recommend(HOST, loaded(0) + measured(130.0, 100.0))
    assert (choice.value, choice.reason) == (None, "no workers to give threads to")
    assert recommend(HOST, []).value is None
