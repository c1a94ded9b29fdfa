"""How many workers a program's own DataLoader is to have, with rates that are made up."""

from dataclasses import replace
from typing import Any

import pytest
from recorded import facts_of

from gputune.trials.loading import best_workers, most_workers

LOADER: dict[str, Any] = {"workers": 0, "batches": 1000, "batch_bytes": 0, "left": None}


def batches(per_worker: float, step: float, cpus: int = 16) -> Any:
    """The steps/s of a program whose workers make so many batches/s each, on so many CPUs, and whose step takes so
    long.
    """

    def rate(workers: int) -> float:
        if not workers:
            return 1 / (step + 1 / per_worker)
        return min(1 / step, per_worker * min(workers, cpus))

    return rate


class TestBest:
    def test_the_fewest_with_which_it_does_not_wait(self) -> None:
        assert best_workers(batches(10, 0.02), 32, 50.0, 1000) in (5, 6)

    def test_the_fewest_that_are_nearly_the_best_where_none_are_enough(self) -> None:
        assert best_workers(batches(10, 0.001), 32, 1000.0, 1000) == 16

    def test_none_where_workers_bring_nothing(self) -> None:
        assert best_workers(lambda workers: 10.0 if workers else 12.0, 8, 100.0, 1000) == 0

    def test_what_was_seen_counts_where_time_is_over(self) -> None:
        asked: list[int] = []

        def rate(workers: int) -> float:
            asked.append(workers)
            return float(batches(10, 0.001)(workers))

        assert best_workers(rate, 32, 1000.0, 1000, over=lambda: len(asked) >= 2) == max(asked)
        assert asked[-1] == 0
        assert len(asked) <= 3


class TestMost:
    @pytest.fixture
    def sixteen(self) -> Any:
        facts = facts_of("cpu-only")
        cpu = replace(facts.cpu, budget=16, affinity_count=16, logical_count=16, quota=None)
        return replace(facts, cpu=cpu, memory=replace(facts.memory, shm_free_bytes=1 << 30))

    def test_by_cpus_which_ranks_share(self, sixteen: Any) -> None:
        assert most_workers(sixteen, LOADER, 1) == 64
        assert most_workers(sixteen, LOADER, 4) == 16

    def test_no_more_than_an_epoch_has_batches(self, sixteen: Any) -> None:
        assert most_workers(sixteen, {**LOADER, "batches": 3}, 1) == 3

    def test_an_epoch_without_a_length(self, sixteen: Any) -> None:
        assert most_workers(sixteen, {**LOADER, "batches": None}, 1) == 64

    def test_what_shared_memory_holds(self, sixteen: Any) -> None:
        few = most_workers(sixteen, {**LOADER, "batch_bytes": 64 << 20}, 1)
        assert 0 < few < 8
        assert most_workers(sixteen, {**LOADER, "batch_bytes": 1 << 30}, 1) == 0
