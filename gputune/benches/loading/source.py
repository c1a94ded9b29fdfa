"""A DataLoader under test: its dataset and its arguments."""

import copy
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gputune.benches._user_code import UserCodeError
from gputune.knobs.dataloader_prefetch_factor import PREFETCH
from gputune.resources.room import temporary_folder

NO_FOLDER = "workers need a folder for temporary files, and there is none: set TMPDIR, or docker run --tmpfs /tmp"


@dataclass(frozen=True)
class Options:
    workers: int
    prefetch_factor: int = PREFETCH


@dataclass(kw_only=True)
class Source:
    """A dataset, and the DataLoader arguments that are not under test."""

    dataset: Any
    batch_size: int | None
    """Samples in a batch; None where the dataset makes whole batches by itself."""
    indices: Iterable[Any] | None = None
    """The sampler of an epoch, or of its batches; None for an IterableDataset, which has none."""
    epoch_batches: int | None = None
    """Batches in an epoch; None where the dataset has no length."""
    more: dict[str, Any] = field(default_factory=dict)
    """collate_fn, worker_init_fn, multiprocessing_context, drop_last, as DataLoader calls them."""
    piece: int | None = None
    """The samples that batches are cut to, so that slow ones do not take all of the time; None: whole batches."""
    patience: float = 20.0
    """Seconds after which a batch that has not come is a hang."""
    stall: float | None = None
    """Seconds after which a block that should have ended is stuck; None: `patience`."""

    def __post_init__(self) -> None:
        self.stream = _forever(self.indices if self.indices is not None else (), self.piece)
        """The indices of the batches, or of the samples, that are loaded next."""

    @property
    def samples(self) -> int:
        whole = self.batch_size or 1
        return min(whole, self.piece) if self.piece else whole

    def loader(self, options: Options) -> Any:
        """A DataLoader without end, which goes on in the epoch where the last one stopped, so that none reads what the
        page cache just took in. Raises UserCodeError where workers would hang.
        """
        import torch

        dataset = self.dataset if options.workers else apart(self.dataset)
        more = {**self.more, "num_workers": options.workers}
        if not options.workers:
            more.pop("multiprocessing_context", None)
        elif not temporary_folder():
            raise UserCodeError(NO_FOLDER)
        else:
            more |= {"prefetch_factor": options.prefetch_factor, "persistent_workers": True, "timeout": self.patience}
        if self.indices is None:
            more["batch_size"] = self.samples if self.batch_size else None
        else:
            more.pop("drop_last", None)
            more |= {"batch_sampler": self.stream} if self.batch_size else {"batch_size": None, "sampler": self.stream}
        with warnings.catch_warnings():  # about more workers than CPUs, which is what is being tried
            warnings.filterwarnings("ignore", "This DataLoader will create")
            return torch.utils.data.DataLoader(dataset, **more)


def apart(dataset: Any, copied: dict[int, Any] | None = None) -> Any:
    """A copy for loading in this process that shares all data: later workers do not inherit a file that it opens."""
    import torch

    copies = {} if copied is None else copied

    def copy_of(value: Any) -> Any:
        if isinstance(value, torch.utils.data.Dataset):
            return copies[id(value)] if id(value) in copies else apart(value, copies)
        if type(value) in (list, tuple) and any(isinstance(item, torch.utils.data.Dataset) for item in value):
            return type(value)(map(copy_of, value))
        return value

    if not isinstance(getattr(dataset, "__dict__", None), dict):
        return dataset
    with suppress(Exception):  # a dataset that cannot be copied is loaded as it is
        other = copies[id(dataset)] = copy.copy(dataset)
        other.__dict__.update({name: copy_of(value) for name, value in vars(dataset).items()})
        return other
    return dataset


def _forever(epoch: Iterable[Any], piece: int | None) -> Iterator[Any]:
    """The indices of epoch after epoch, of batches in pieces. Raises UserCodeError where an epoch has none."""
    while True:
        count = 0
        for indices in epoch:
            count += 1
            if piece and isinstance(indices, Sequence):
                yield from (indices[start : start + piece] for start in range(0, len(indices), piece))
            else:
                yield indices
        if not count:
            raise UserCodeError("the dataset is empty")
