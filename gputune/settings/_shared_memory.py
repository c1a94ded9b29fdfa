"""The size of /dev/shm that a DataLoader needs, from the bytes of a real batch."""

import math
from dataclasses import dataclass

from . import Facts, Measurements
from ._evidence import first
from ._loading_rows import HELD, PREFETCH
from .dataloader_workers import chosen_workers, curve, without_limit

SHARE = 0.9
"""The share of /dev/shm that batches in flight may fill: they differ in size."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The workers that would be best if there were room for them, and the size of /dev/shm that makes the room."""

    workers: int
    batch_bytes: int
    shm_bytes: int

    @property
    def mebibytes(self) -> int:
        return self.shm_bytes // _MIB


def need(facts: Facts, measurements: Measurements) -> Need | None:
    """The need of the measured dataset; None where none was measured, or where it loads best without workers."""
    size = first(measurements, "dataset", "batch_bytes")
    if size is None or not curve(measurements, "dataset"):
        return None
    unlimited = without_limit(measurements)
    workers = max(chosen_workers(facts, measurements), unlimited.workers if unlimited else 0)
    if not workers:
        return None
    largest = int(max(size.samples))
    return Need(workers=workers, batch_bytes=largest, shm_bytes=needed(workers, largest))


def needed(workers: int, batch_bytes: int) -> int:
    """Bytes of /dev/shm, in whole MiB, for the batches in flight and those that the consumer holds."""
    batches = workers * PREFETCH + HELD
    return math.ceil(batches * batch_bytes / SHARE / _MIB) * _MIB
