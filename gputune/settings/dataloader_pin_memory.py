"""Whether a DataLoader puts batches into page-locked memory (`pin_memory`), which a GPU copies several times faster.

A thread of the training process copies each batch into that memory, so it pays where training waits for transfers.
Without a GPU it does nothing. Measured on the user's own batches where there are some, otherwise on large synthetic
ones.

Source: PyTorch, "torch.utils.data", memory pinning.
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import compared, decide, keep, lacking, of_device
from ._loading_rows import loading_rows
from .dataloader_workers import bench_of

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "cpu")


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return keep(False, "there is no GPU to copy to")
    bench = bench_of(measurements)
    rows = {params.pin_memory: row for params, row in loading_rows(measurements, bench, "transfer").items()}
    comparison = compared(rows.get(True), rows.get(False))
    if comparison is None:
        return keep(False, lacking(rows.get(True), rows.get(False)))
    batches = "the dataset's batches" if bench == "dataset" else "large batches"
    return decide(
        comparison, (False, True), f"loading {batches} through pinned memory and copying them to the GPU", bench
    )
