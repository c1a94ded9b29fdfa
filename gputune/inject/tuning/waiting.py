"""The time that a training loop waits for its data, and the loop fed with one batch again and again."""

import functools
import threading
import time
from typing import Any


class Loading:
    """Every DataLoader of this process, from `start` on."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """How long the thread that trains was in the loaders' `__next__`, since this was last set to zero."""
        self.fed = False
        """Whether a loader hands out again the batch that it handed out last, which takes no time."""
        self._batches: dict[int, Any] = {}

    def start(self) -> None:
        from torch.utils.data import dataloader

        kind = getattr(dataloader, "_BaseDataLoaderIter", None)
        if kind is None:
            return
        original, thread = kind.__next__, threading.get_ident()

        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            if threading.get_ident() != thread:
                return original(iterator)
            if self.fed and id(iterator) in self._batches:
                return self._batches[id(iterator)]
            begun = time.perf_counter()
            try:
                batch = original(iterator)
            finally:
                self.seconds += time.perf_counter() - begun
            self._batches = {id(iterator): batch}  # of the latest loader only: batches may be large
            return batch

        kind.__next__ = following
