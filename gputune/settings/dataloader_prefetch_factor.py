"""How many batches each DataLoader worker prepares ahead (`prefetch_factor`; torch's default is 2).

More of them even out samples of uneven cost and take shared memory: workers x prefetch_factor x the bytes of a batch.
Where /dev/shm holds no more, it is 1.

Source: PyTorch, "torch.utils.data".
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import choose, decide_between
from ._loading_rows import PREFETCH_FACTORS
from .dataloader_workers import bench_of, chosen_workers, curve, rows_of_option

VALUE = int | None
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = PREFETCH_FACTORS


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    workers, bench = chosen_workers(facts, measurements), bench_of(measurements)
    if workers == 0:
        return choose(None, "no workers, so nothing is prefetched")
    if any((params.workers, params.prefetch_factor) == (workers, 1) for params in curve(measurements, "dataset")):
        return choose(1, "/dev/shm holds no more of the dataset's batches", None, bench)
    four, two = (rows_of_option(measurements, "prefetch", "prefetch_factor", count) for count in (4, 2))
    return decide_between(four, two, (None, 4), "loading with 4 batches ahead per worker", bench)
