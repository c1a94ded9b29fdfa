"""How many batches each DataLoader worker prepares ahead (`prefetch_factor`; torch's default is 2).

They take shared memory: workers x prefetch_factor x the bytes of a batch. Where /dev/shm holds no more of the measured
dataset's batches, it is 1; otherwise torch's default stays (4 made no program faster: docs/data-loading.md).

Source: PyTorch, "torch.utils.data".
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import choose
from ._loading_rows import PREFETCH_FACTORS
from .dataloader_workers import chosen_workers, curve

VALUE = int | None
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = PREFETCH_FACTORS


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    workers = chosen_workers(facts, measurements)
    if workers == 0:
        return choose(None, "no workers, so nothing is prefetched")
    if any((params.workers, params.prefetch_factor) == (workers, 1) for params in curve(measurements, "dataset")):
        return choose(1, "/dev/shm holds no more of the dataset's batches", None, "dataset")
    return choose(None, "torch's own 2: more batches ahead make no program faster")
