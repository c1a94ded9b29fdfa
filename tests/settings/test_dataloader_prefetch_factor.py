"""How many batches a worker prepares ahead; none is torch's own number."""

from typing import Any

from making import row
from recorded import facts_of

from gputune.settings.dataloader_prefetch_factor import recommend


def test_one_where_shared_memory_holds_no_more_batches_of_the_dataset() -> None:
    more: list[Any] = [
        row("dataset", "throughput", rate, kind="prefetch", workers=4, prefetch_factor=n)
        for n, rate in ((4, 130.0), (2, 100.0))
    ]
    own = [
        row("dataset", "throughput", 100.0, kind="dataset", workers=0, batch=8),
        row("dataset", "throughput", 380.0, kind="dataset", workers=4, batch=8, prefetch_factor=1),
        row("dataset", "throughput", 100.0, kind="dataset", workers=1, batch=8, prefetch_factor=2),
    ]
    choice = recommend(facts_of(), more + own)
    assert (choice.value, choice.gain, choice.evidence) == (1, None, ("dataset",))
    assert choice.reason == "/dev/shm holds no more of the dataset's batches"
