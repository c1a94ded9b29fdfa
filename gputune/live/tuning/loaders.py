"""The DataLoaders of a program: how long its loop waits for them, and one of them with other numbers of workers.

The program goes on to ask the iterator that it has; the batches come from another one in its place, which lives beside
it. Workers of those that are not asked are stopped meanwhile (SIGSTOP), so that none fills its queue while another is
timed.
"""

import copy
import os
import signal
import time
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...knobs._outputs import tensors
from ...knobs.dataloader_prefetch_factor import PREFETCH
from .. import loader_patches, observer
from ..advice import Loading
from ..loader import Arguments, dataset_class, obstacle
from ..orders import LoaderDescribed


class Loaders:
    """Every DataLoader of this process, from `start` on. Only the thread that trains is followed."""

    def __init__(self, ended: Callable[[], None] = lambda: None) -> None:
        """`ended` is called at the end of each epoch, before the program knows of it."""
        self._ended = ended
        self.seconds = 0.0
        """How long the thread that trains was in the loaders' `__next__`, since this was last set to zero."""
        self._arguments = Arguments()
        self._loader_of: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._asked: weakref.WeakSet[Any] = weakref.WeakSet()
        """The loaders that were asked for an iterator."""
        self._taken: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """By iterator of the program's, how many batches of its epoch it has got, whoever made them."""
        self._latest: Callable[[], Any] = lambda: None
        self._batch_bytes = 0
        self._replaceable: tuple[type, int] | None = None
        """The class of a dataset, and the batches of an epoch, of the loaders whose batches others may make. A program
        may make its dataset anew for each epoch.
        """
        self._workers: int | None = None
        self._others: dict[int, Other] = {}

    def start(self) -> None:
        home = observer.here()

        def following(iterator: Any, original: Callable[[Any], Any]) -> Any:
            if observer.here() != home:
                return original(iterator)
            begun = time.perf_counter()
            try:
                batch = self._batch(iterator, original)
            except StopIteration:
                self._taken.pop(iterator, None)
                self._ended()
                raise
            else:
                self._taken[iterator] = self._taken.get(iterator, 0) + 1
                return batch
            finally:
                self.seconds += time.perf_counter() - begun

        self._arguments.follow()
        loader_patches.loader_iterators(self._began, following)

    @property
    def may_train(self) -> bool:
        """Whether there is a loader that shuffles, as for a training, and was not asked yet."""
        from torch.utils.data import RandomSampler

        waiting = [loader for loader in self._arguments.loaders if loader not in self._asked]
        return any(isinstance(getattr(loader, "sampler", None), RandomSampler) for loader in waiting)

    def go_on(self) -> None:
        """Have all workers run, since the program's exit waits for them."""
        for other in self._others.values():
            other.signal(signal.SIGCONT)

    def described(self) -> LoaderDescribed:
        """The loader that was asked last. If there is no obstacle, its batches may be made by others from then on."""
        loader = self._latest()
        if loader is None:
            return LoaderDescribed(obstacle="")
        left = obstacle(loader, self._arguments.names(loader), Loading(choices={}))
        batches = None
        with suppress(Exception):  # an IterableDataset may have no length
            batches = len(loader)
        why = left.why if left else None if batches else "its epochs have no length"
        self._replaceable = None if why else _kind(loader)
        name = dataset_class(loader.dataset)
        return LoaderDescribed(batches=batches, batch_bytes=self._batch_bytes, dataset=name, obstacle=why)

    def switch(self, workers: int | None) -> None:
        """Have so many workers make the batches; None for the loader as the program made it."""
        for number, other in self._others.items():
            other.signal(signal.SIGCONT if number == workers else signal.SIGSTOP)
        self._workers = workers

    def _began(self, iterator: Any, loader: Any) -> None:
        self._loader_of[iterator] = loader
        self._asked.add(loader)

    def _batch(self, iterator: Any, following: Callable[[Any], Any]) -> Any:
        """Raises StopIteration at the end of the program's epoch, which has as many batches as ever."""
        loader = self._loader_of.get(iterator)
        if loader is not None and self._replaceable is not None and _kind(loader) == self._replaceable:
            if self._taken.get(iterator, 0) >= len(loader):
                raise StopIteration
            if self._workers is not None:
                if self._workers not in self._others:
                    self._others[self._workers] = Other(loader, self._workers, following)
                return self._others[self._workers].take()
        batch = following(iterator)
        if loader is not None and loader is not self._latest():
            self._latest = weakref.ref(loader)
            self._batch_bytes = sum(one.numel() * one.element_size() for one in tensors(batch))
        return batch


def _kind(loader: Any) -> tuple[type, int] | None:
    try:
        return type(loader.dataset), len(loader)
    except Exception:  # whatever a dataset or sampler of the program's raises
        return None


class Other:
    """The batches of a loader, made by another number of workers: they begin again as often as an epoch of the
    program's, in which these workers were not asked from the start, needs them to.
    """

    def __init__(self, loader: Any, workers: int, following: Callable[[Any], Any]) -> None:
        self._loader = copy.copy(loader)
        own = {"num_workers": workers, "prefetch_factor": PREFETCH, "persistent_workers": False, "_iterator": None}
        vars(self._loader).update(own)  # which a loader that has been made does not let be set
        self._following = following
        self._iterator: Any = None

    def take(self) -> Any:
        """Raises StopIteration where an epoch has no batch."""
        if self._iterator is not None:
            with suppress(StopIteration):
                return self._following(self._iterator)
        with warnings.catch_warnings():  # about more workers than CPUs, which is what is being tried
            warnings.filterwarnings("ignore", "This DataLoader will create")
            self._iterator = iter(self._loader)
        return self._following(self._iterator)

    def signal(self, number: int) -> None:
        for worker in getattr(self._iterator, "_workers", ()):
            with suppress(ProcessLookupError):
                os.kill(worker.pid, number)
