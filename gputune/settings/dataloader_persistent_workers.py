"""Whether a DataLoader keeps its workers from one epoch to the next (`persistent_workers`) instead of starting them anew.

It saves their start at every epoch, which matters where epochs are short, and keeps their memory.

Source: PyTorch, "torch.utils.data".
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import compared, decide, keep, lacking, one
from .dataloader_workers import recommend as recommend_workers

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu", "cpu_budget")


def recommend(facts: Any, measurements: Any) -> Choice:
    if recommend_workers(facts, measurements).value == 0:
        return keep(False, "no workers to keep")
    kept = one(measurements, "dataloader", "throughput", kind="epochs", persistent_workers=True)
    renewed = one(measurements, "dataloader", "throughput", kind="epochs", persistent_workers=False)
    comparison = compared(kept, renewed)
    if comparison is None or kept is None:
        return keep(False, lacking(kept, renewed))
    what = f"epochs of {kept.params['epoch_seconds']} s with workers kept between them"
    return decide(comparison, (False, True), what, "dataloader")
