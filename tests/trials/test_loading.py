"""How many workers a program's own DataLoader is to have, with rates that are made up."""

from dataclasses import replace
from typing import Any

import pytest
from recorded import facts_of

from gputune.live.orders import LoaderDescribed
from gputune.trials.loading import best_workers, most_workers

LOADER = LoaderDescribed(batches=1000)


def batches(per_worker: float, step: float, cpus: int = 16) -> Any:
    """The steps/s with workers of which each makes so many batches/s, if a step takes `step` seconds."""

    def rate(workers: int) -> float:
        if not workers:
            return 1 / (step + 1 / per_worker)
        return min(1 / step, per_worker * min(workers, cpus))

    return rate


@pytest.mark.parametrize(
    ("rate", "most", "enough", "expected"),
    [
        (batches(10, 0.02), 32, 50.0, {5, 6}),
        (batches(10, 0.001), 32, 1000.0, {16}),
        (lambda workers: 10.0 if workers else 12.0, 8, 100.0, {0}),
    ],
    ids=["the fewest that are enough", "the fewest that are nearly the best", "none where workers bring nothing"],
)
def test_the_best_number_of_workers(rate: Any, most: int, enough: float, expected: set[int]) -> None:
    assert best_workers(rate, most, enough, 1000) in expected


def test_what_was_seen_counts_where_time_is_over() -> None:
    asked: list[int] = []

    def rate(workers: int) -> float:
        asked.append(workers)
        return float(batches(10, 0.001)(workers))

    assert best_workers(rate, 32, 1000.0, 1000, over=lambda: len(asked) >= 2) == max(asked)
    assert asked[-1] == 0
    assert len(asked) <= 3


@pytest.mark.parametrize(
    ("changed", "ranks", "most"),
    [
        ({}, 1, 64),
        ({}, 4, 16),
        ({"batches": 3}, 1, 3),
        ({"batches": None}, 1, 64),
        ({"batch_bytes": 64 << 20}, 1, 6),
        ({"batch_bytes": 1 << 30}, 1, 0),
    ],
    ids=[
        "by CPUs",
        "which ranks share",
        "by batches of an epoch",
        "of no known length",
        "by shared memory",
        "which holds none",
    ],
)
def test_the_most_workers(changed: dict[str, Any], ranks: int, most: int) -> None:
    facts = facts_of("cpu-only")
    cpu = replace(facts.cpu, budget=16, affinity_count=16, logical_count=16, quota=None)
    sixteen = replace(facts, cpu=cpu, memory=replace(facts.memory, shm_free_bytes=1 << 30))
    assert most_workers(sixteen, replace(LOADER, **changed), ranks) == most
