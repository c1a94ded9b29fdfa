"""Whether a DataLoader copies batches into page-locked memory (`pin_memory`), from which copies to a GPU are several times faster.

The copy into that memory is made by a thread of the training process, so it pays where transfers are what is waited
for. Without a GPU it does nothing. Measured on the user's own batches where there are some, else on large synthetic ones.

Source: PyTorch, "torch.utils.data", memory pinning.
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import compared, decide, keep, lacking, of_device, one
from .dataloader_workers import bench_of

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "cpu")


def recommend(facts: Any, measurements: Any) -> Choice:
    if not of_device(measurements):
        return keep(False, "there is no GPU to copy to")
    bench = bench_of(measurements)
    pinned = one(measurements, bench, "throughput", kind="transfer", pin_memory=True)
    pageable = one(measurements, bench, "throughput", kind="transfer", pin_memory=False)
    comparison = compared(pinned, pageable)
    if comparison is None:
        return keep(False, lacking(pinned, pageable))
    batches = "the dataset's batches" if bench == "dataset" else "large batches"
    return decide(
        comparison, (False, True), f"loading {batches} through pinned memory and copying them to the GPU", bench
    )
