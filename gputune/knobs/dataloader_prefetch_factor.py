"""How many batches each DataLoader worker prepares ahead (`prefetch_factor`; torch's default is 2).

They take shared memory: workers x prefetch_factor x the bytes of a batch. Where /dev/shm holds no more of the measured
dataset's batches, it is 1; otherwise torch's default stays (4 made no program faster: docs/data-loading.md).

Source: PyTorch, "torch.utils.data".
"""

from . import Numerics, Phase

AHEAD = "dataloader_prefetch_factor"
"""The setting's name, for those that treat it by itself."""
VALUE = int | None
DEFAULT = None
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = (1, 64)

PREFETCH = 2
SHARE = 0.9
"""The share of /dev/shm that batches in flight may fill: they differ in size."""
HELD = 2
"""Batches beyond those that workers prepare: the one that the consumer holds, and the one that replaces it."""
