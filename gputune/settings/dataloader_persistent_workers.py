"""Whether a DataLoader keeps its workers from one epoch to the next (`persistent_workers`) instead of starting them anew.

It saves their start at every epoch, which matters where epochs are short or a worker's first sample takes long, and keeps their
memory. What a program changes in its dataset between two epochs does not reach workers that are kept.

Source: PyTorch, "torch.utils.data".
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import compared, counted, decide, keep, lacking, one
from .dataloader_workers import bench_of
from .dataloader_workers import recommend as recommend_workers

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)

LEAST_PAIRS = 3
"""So few say that next to nothing is saved: the starts of long epochs are not timed any further."""


def recommend(facts: Any, measurements: Any) -> Choice:
    if recommend_workers(facts, measurements).value == 0:
        return keep(False, "no workers to keep")
    bench = bench_of(measurements)
    kept = one(measurements, bench, "throughput", kind="epochs", persistent_workers=True)
    renewed = one(measurements, bench, "throughput", kind="epochs", persistent_workers=False)
    comparison = compared(kept, renewed)
    if kept is None or renewed is None:
        return keep(False, lacking(kept, renewed))
    long = f"an epoch of {_seconds(kept.params['epoch_seconds'])}"
    if comparison is None:
        few = min(len(kept.samples), len(renewed.samples))
        if few >= LEAST_PAIRS and kept.median < 1.03 * renewed.median:
            started = counted(kept.params["workers"], "worker")
            return keep(False, f"no gain: to start {started} is next to nothing beside {long}", [bench])
        return keep(False, lacking(kept, renewed))
    return decide(comparison, (False, True), f"{long} with workers kept from the one before", bench)


def _seconds(value: Any) -> str:
    return f"{value:.3g} s"
