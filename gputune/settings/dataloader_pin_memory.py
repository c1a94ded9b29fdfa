"""Whether a DataLoader puts batches into page-locked memory (`pin_memory`), which a GPU copies several times faster.

A thread of the training process copies each batch into that memory, so it pays where training waits for transfers.
Without a GPU it does nothing. Measured on the user's own batches where there are some, otherwise on synthetic ones.

Source: PyTorch, "torch.utils.data", memory pinning.
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import choose, decide_between, of_device
from .dataloader_workers import bench_of, rows_of_option

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "cpu")


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(False, "there is no GPU to copy to")
    bench = bench_of(measurements)
    pinned, pageable = (rows_of_option(measurements, "transfer", "pin_memory", on) for on in (True, False))
    batches = "the dataset's batches" if bench == "dataset" else "large batches"
    what = f"loading {batches} through pinned memory and copying them to the GPU"
    return decide_between(pinned, pageable, (False, True), what, bench)
