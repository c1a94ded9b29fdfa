"""How many batches each DataLoader worker prepares ahead (`prefetch_factor`; torch's default is 2, none without workers).

More of them smooth samples of uneven cost and take shared memory: workers x prefetch_factor x the bytes of a batch. Where /dev/shm
holds no more, it is 1.

Source: PyTorch, "torch.utils.data".
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import compared, decide, keep, lacking, one
from .dataloader_workers import bench_of, curve
from .dataloader_workers import recommend as recommend_workers

VALUE = int | None
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = (1, 64)


def recommend(facts: Any, measurements: Any) -> Choice:
    workers = recommend_workers(facts, measurements).value
    if workers == 0:
        return keep(None, "no workers, so nothing is prefetched")
    bench = bench_of(measurements)
    chosen = [row for row in curve(measurements, "dataset") if row.params["workers"] == workers]
    if chosen and chosen[0].params.get("prefetch_factor") == 1:
        return Choice(value=1, reason="/dev/shm holds no more of the dataset's batches", evidence=(bench,))
    more = one(measurements, bench, "throughput", kind="prefetch", prefetch_factor=4)
    default = one(measurements, bench, "throughput", kind="prefetch", prefetch_factor=2)
    comparison = compared(more, default)
    if comparison is None:
        return keep(None, lacking(more, default))
    return decide(comparison, (None, 4), "loading with 4 batches ahead a worker instead of 2", bench)
