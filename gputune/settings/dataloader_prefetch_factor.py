"""How many batches each DataLoader worker prepares ahead (`prefetch_factor`; torch's default is 2).

More of them even out samples of uneven cost and take shared memory: workers x prefetch_factor x the bytes of a batch.
Where /dev/shm holds no more, it is 1.

Source: PyTorch, "torch.utils.data".
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import compared, decide, keep, lacking
from ._loading_rows import PREFETCH_FACTORS, loading_rows
from .dataloader_workers import bench_of, chosen_workers, curve

VALUE = int | None
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = PREFETCH_FACTORS


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    workers, bench = chosen_workers(measurements), bench_of(measurements)
    if workers == 0:
        return keep(None, "no workers, so nothing is prefetched")
    if any((params.workers, params.prefetch_factor) == (workers, 1) for params in curve(measurements, "dataset")):
        return Choice(value=1, reason="/dev/shm holds no more of the dataset's batches", evidence=(bench,))
    rows = {params.prefetch_factor: row for params, row in loading_rows(measurements, bench, "prefetch").items()}
    comparison = compared(rows.get(4), rows.get(2))
    if comparison is None:
        return keep(None, lacking(rows.get(4), rows.get(2)))
    return decide(comparison, (None, 4), "loading with 4 batches ahead a worker instead of 2", bench)
