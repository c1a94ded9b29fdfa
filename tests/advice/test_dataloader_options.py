"""The DataLoader's options besides its workers: rules, without a bench of their own."""

from typing import Any

import pytest
from making import row
from recorded import facts_of

from gputune.advice import Choice, dataloader_pin_memory, dataloader_prefetch_factor

HOST = facts_of(affinity=range(16))


def own(workers: int, rate: float, **more: Any) -> Any:
    return row("dataset", "throughput", rate, kind="dataset", workers=workers, batch=8, **more)


@pytest.mark.parametrize(("device", "pinned"), [("cuda:0", True), ("cpu", False)])
def test_memory_is_pinned_for_a_gpu(device: str, pinned: bool) -> None:
    rows = [row("matmul_peak", "burst", 1.0, device=device)]
    assert dataloader_pin_memory.recommend(HOST, rows).value is pinned


def prefetched(*rows: Any) -> Choice:
    return dataloader_prefetch_factor.recommend(HOST, rows)


def test_torch_decides_how_many_batches_are_ahead() -> None:
    assert prefetched(own(0, 100.0), own(4, 380.0, prefetch_factor=2)).value is None
    assert prefetched(own(0, 100.0)).reason == "no workers, so nothing is prefetched"


def test_a_batch_ahead_where_shared_memory_holds_no_more_of_the_dataset() -> None:
    choice = prefetched(own(0, 100.0), own(4, 380.0, prefetch_factor=1), own(1, 100.0, prefetch_factor=2))
    assert (choice.value, choice.gain, choice.evidence) == (1, None, ("dataset",))
    assert choice.reason == "/dev/shm holds no more of the dataset's batches"
