"""Whether a DataLoader puts batches into page-locked memory (`pin_memory`), which a GPU copies several times faster.

On for a GPU, without a measurement of its own: a training step waits for the copy of its batch, and a loader that is
timed alone, with nothing beside it, does not show that. Figures of a whole training are in docs/data-loading.md.
Without a GPU it does nothing.

Source: PyTorch, "torch.utils.data", memory pinning.
"""

from . import Numerics, Phase

VALUE = bool
DEFAULT = False
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "cpu")
