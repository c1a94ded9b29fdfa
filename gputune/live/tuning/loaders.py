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
from .. import observer, patches
from ..advice import Loading
from ..loader import Arguments, dataset_class, obstacle
from ..orders import LoaderDescribed


class Loaders:
    """Every DataLoader of this process, from `start` on. Only the thread that trains is followed."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """How long the thread that trains was in the loaders' `__next__`, since this was last set to zero."""
        self._arguments = Arguments()
        self._loader_of: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._latest: Callable[[], Any] = lambda: None
        self._batch_bytes = 0
        self._dataset: Any = None
        """The dataset whose loaders may be replaced by others."""
        self._workers: int | None = None
        self._others: dict[int, Other] = {}

    def start(self) -> None:
        home = observer.here()

        def following(iterator: Any, original: Callable[[Any], Any]) -> Any:
            if observer.here() != home:
                return original(iterator)
            begun = time.perf_counter()
            try:
                return self._batch(iterator, original)
            finally:
                self.seconds += time.perf_counter() - begun

        self._arguments.follow()
        patches.loader_iterators(self._loader_of.__setitem__, following)

    def described(self) -> LoaderDescribed:
        """The loader that was asked last. If there is no obstacle, its batches may be made by others from then on."""
        loader = self._latest()
        if loader is None:
            return LoaderDescribed(obstacle="")
        left = obstacle(loader, self._arguments.names(loader), Loading(choices={}))
        self._dataset = None if left else loader.dataset
        batches = None
        with suppress(Exception):  # an IterableDataset may have no length
            batches = len(loader)
        return LoaderDescribed(
            batches=batches, batch_bytes=self._batch_bytes, dataset=dataset_class(loader.dataset),
            obstacle=left.why if left else None,
        )  # fmt: skip

    def switch(self, workers: int | None) -> None:
        """Have so many workers make the batches; None for the loader as the program made it."""
        for number, other in self._others.items():
            other.signal(signal.SIGCONT if number == workers else signal.SIGSTOP)
        self._workers = workers

    def _batch(self, iterator: Any, following: Callable[[Any], Any]) -> Any:
        loader = self._loader_of.get(iterator)
        if self._workers is not None and loader is not None and loader.dataset is self._dataset:
            if self._workers not in self._others:
                self._others[self._workers] = Other(loader, self._workers, following)
            return self._others[self._workers].take()
        batch = following(iterator)
        if loader is not None and loader is not self._latest():
            self._latest = weakref.ref(loader)
            self._batch_bytes = sum(one.numel() * one.element_size() for one in tensors(batch))
        return batch


class Other:
    """The batches of a loader, epoch after epoch, made by another number of workers."""

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
