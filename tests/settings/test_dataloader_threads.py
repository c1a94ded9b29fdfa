"""How many threads each worker computes with, where CPUs are idle; none is torch's own, which is one."""

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.settings import Choice
from gputune.settings.dataloader_threads import recommend


def chosen(cpus: int, workers: int, threads: int = 4) -> Choice:
    """The choice for a dataset for which so many workers are the best, where more threads in each gain."""
    rates = {0: 100.0, workers: 380.0 if workers else 100.0, 32: 90.0}
    curve: list[Any] = [row("dataset", "throughput", rates[n], kind="dataset", workers=n, batch=8) for n in rates]
    gain = [
        row("dataset", "throughput", rate, kind="threads", workers=4, threads=count)
        for count, rate in ((1, 100.0), (threads, 130.0))
    ]
    return recommend(facts_of(affinity=range(cpus)), curve + gain)


@pytest.mark.parametrize(
    ("cpus", "workers", "reason"),
    [
        (4, 4, "4 workers and 4 CPUs: one thread for each"),
        (7, 4, "4 workers and 7 CPUs: one thread for each"),
        (1, 1, "1 worker and 1 CPU: one thread for each"),
        (2, 4, "4 workers and 2 CPUs: one thread for each"),
        (16, 0, "no workers to give threads to"),
    ],
)
def test_only_where_cpus_are_idle(cpus: int, workers: int, reason: str) -> None:
    choice = chosen(cpus, workers)
    assert (choice.value, choice.gain, choice.reason) == (None, None, reason)


def test_cpus_are_idle_from_two_for_each_worker_on() -> None:
    assert chosen(8, 4, threads=2).value == 2


def test_threads_of_forked_workers_are_not_measured() -> None:
    rows = [row("dataloader", "throughput", rate, kind="decoding", workers=n) for n, rate in ((0, 100.0), (4, 380.0))]
    choice = recommend(facts_of(affinity=range(16)), rows)
    assert choice.value is None
    assert "in forked workers more would wait for ever" in choice.reason
