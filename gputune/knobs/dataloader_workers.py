"""How many worker processes a DataLoader gets (`num_workers`; torch's default is 0: the training process loads itself).

Where the user's own dataset was measured (`gputune probe --dataset`), the fewest workers within 3 % of the best, or
with a consumer's step the fewest with which it waits for less than 1 % of its step. Otherwise measured on three kinds
of synthetic samples, which stand for others and are timed in short rounds, so that small differences mean nothing: the
most workers within 30 % of the best that gain more than that over none, or else the fastest, if it gains. The general
choice is made for samples that cost CPU time, as decoding images does. Slices of memory, for which workers usually cost
more than they bring, and samples that are waited for, as from an object store, which may want more workers than there
are CPUs, have a choice of their own in the profile's `families`. `Tuning.dataloader_kwargs(dataset)` finds out which
kind a dataset is.

Source: PyTorch, "torch.utils.data"; measured here.
"""

from . import Numerics, Phase, Stage

WORKERS = "dataloader_workers"
"""The setting's name, for those that treat it by itself."""
VALUE = int
DEFAULT = 0
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
STAGE: Stage = "loading"
CANDIDATE = 1
SPARES_HOST = True
LIMITS = (0, 1024)
