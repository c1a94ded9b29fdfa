"""Whether a DataLoader puts batches into page-locked memory (`pin_memory`), which a GPU copies several times faster.

On for a GPU, without a measurement of its own: a training step waits for the copy of its batch, and a loader that is
timed alone, with nothing beside it, does not show that. Figures of a whole training are in docs/data-loading.md.
Without a GPU it does nothing.

Source: PyTorch, "torch.utils.data", memory pinning.
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import choose, of_device

VALUE = bool
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "cpu")


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(False, "there is no GPU to copy to")
    return choose(True, "a GPU copies batches several times faster from page-locked memory")
