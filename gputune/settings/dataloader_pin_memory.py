"""Whether a DataLoader copies batches into page-locked memory (`pin_memory`), from which copies to a GPU are several times faster.

The copy into that memory is made by a thread of the training process, so it pays where transfers are what is waited
for. Without a GPU it does nothing.

Source: PyTorch, "torch.utils.data", memory pinning.
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import compared, decide, keep, lacking, of_device, one

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "cpu", "cpu_budget")


def recommend(facts: Any, measurements: Any) -> Choice:
    if not of_device(measurements):
        return keep(False, "there is no GPU to copy to")
    pinned = one(measurements, "dataloader", "throughput", kind="transfer", pin_memory=True)
    pageable = one(measurements, "dataloader", "throughput", kind="transfer", pin_memory=False)
    comparison = compared(pinned, pageable)
    if comparison is None:
        return keep(False, lacking(pinned, pageable))
    what = "loading large batches through pinned memory and copying them to the GPU"
    return decide(comparison, (False, True), what, "dataloader")
