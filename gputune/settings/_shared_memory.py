"""What a DataLoader needs of /dev/shm, from the bytes of a real batch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import dataloader_prefetch_factor, dataloader_workers
from ._evidence import one
from ._scaling import HELD, PREFETCH
from .dataloader_workers import curve, without_limit

SHARE = 0.9
"""Of /dev/shm that batches in flight may fill: they differ in size."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The setting that would be the best if there were room for it, and the size of /dev/shm that gives the room."""

    workers: int
    prefetch_factor: int
    batch_bytes: int
    shm_bytes: int

    @property
    def mebibytes(self) -> int:
        return self.shm_bytes // _MIB


def need(measurements: Iterable[Any]) -> Need | None:
    """Of the dataset that was measured; None where none was, or the best loads without workers."""
    rows = list(measurements)
    size = one(rows, "dataset", "batch_bytes")
    if size is None or not curve(rows, "dataset"):
        return None
    unsent: Any = without_limit(rows)
    chosen: Any = dataloader_workers.recommend(None, rows).value
    workers = max(chosen, unsent.params["workers"] if unsent else 0)
    if not workers:
        return None
    chosen_ahead: Any = dataloader_prefetch_factor.recommend(None, rows).value
    ahead, largest = max(chosen_ahead or 0, PREFETCH), int(max(size.samples))
    return Need(workers=workers, prefetch_factor=ahead, batch_bytes=largest, shm_bytes=needed(workers, ahead, largest))


def needed(workers: int, prefetch_factor: int, batch_bytes: int) -> int:
    """Bytes of /dev/shm, in whole MiB: `workers` times `prefetch_factor` batches are in flight."""
    batches = workers * prefetch_factor + HELD
    return math.ceil(batches * batch_bytes / SHARE / _MIB) * _MIB
