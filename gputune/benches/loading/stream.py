"""A loader at work: how fast its batches come, and in one line what goes wrong with it.

Loaders of different arguments are timed in turn, so all of them live at once. Between its blocks a loader's workers are
stopped (SIGSTOP): otherwise they would fill their queues while another's block is timed, and a block would begin with what
they had ready.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gputune.benches._user_code import UserCodeError, words
from gputune.benches.loading.patience import OutOfPatience, within
from gputune.benches.loading.source import Options, Source

_KNOWN = {
    r"timed out after": "no batch came within {:.0f} s",
    r"[Bb]us error|shared memory|No space left": "the batches of the workers did not fit into /dev/shm",
    r"killed by signal: Killed": "a worker was killed by SIGKILL",
    r"(killed by signal: [\w ]*\w)": "a worker was {1}",
    r"(Can't pickle .*|cannot pickle .*)": "what is loaded cannot be sent to a worker that is not forked: {1}",
    r"[Tt]oo many open files": "the batches of the workers need more open files than ulimit -n allows",
}
"""What torch says of a worker's end, and what it means."""
LONG_SECONDS = 0.7
"""Of a batch, beside which it is nothing that threads have to wake."""


class Stream:
    """One loader at work. What its dataset raises, and the end of a worker, come out of each call as UserCodeError."""

    def __init__(self, source: Source, options: Options, receive: Callable[[Any], Any] = lambda batch: batch) -> None:
        self.source, self.options = source, options
        self._receive = receive
        self._stopped = False
        self._iterator: Any = None
        self._batches = self._endless()

    def open(self) -> float:
        """Start the workers and wait until each has delivered; the seconds until the first batch was here."""
        with guarded(self.source.patience, 0):
            started = time.perf_counter()
            self.take()
            first = time.perf_counter() - started
            for _ in range(self.options.workers - 1):
                self.take()
        self._pause()
        return first

    def rate(self, seconds: float, step_seconds: float = 0.0, batch_seconds: float = 0.0) -> float:
        """Samples per second of one block: whole rounds of the workers, for at least `seconds`. After each batch the consumer
        is away for `step_seconds`.

        A first batch is not counted: with workers it was in the making while they were stopped, without any it waits for torch's
        threads to wake (50 to 70 ms, measured on 16 CPUs). Only where it takes so long that this is nothing, it is all there is.
        Workers have `batch_seconds`, what they take for one together, to make up for it before a consumer with a step goes on.
        """
        self._resume()
        workers = self.options.workers
        with guarded(self.source.stall or self.source.patience, seconds + max(1, workers) * step_seconds):
            started = time.perf_counter()
            self.take()
            count, taken = 1, time.perf_counter() - started + step_seconds
            if workers or taken < LONG_SECONDS + step_seconds:
                if workers and step_seconds:
                    time.sleep(min(step_seconds, batch_seconds))
                count, started, taken = 0, time.perf_counter(), 0.0
            while taken < seconds:
                for _ in range(max(1, workers)):
                    self.take()
                    if step_seconds:
                        time.sleep(step_seconds)
                count += max(1, workers)
                taken = time.perf_counter() - started
        self._pause()
        return count * self.source.samples / taken

    def take(self) -> Any:
        try:
            return self._receive(next(self._batches))
        except RuntimeError as error:
            if "exited unexpectedly" not in str(error):
                raise
            raise UserCodeError(_ended(self._iterator) or words(error)) from None

    def close(self, *, failed: bool = False) -> None:
        """End the workers. Those of a loader that `failed` may hang, and are not asked."""
        self._resume()
        shut = getattr(self._iterator, "_shutdown_workers", None)
        if shut:
            with suppress(Exception):  # torch raises where it sees a worker die, also now
                if failed:
                    self._signal(signal.SIGKILL)
                shut()
        self._batches.close()
        self._iterator = None  # and with it the batches that it holds in shared memory

    def pids(self) -> list[int]:
        return [worker.pid for worker in getattr(self._iterator, "_workers", ()) if worker.pid]

    def _endless(self) -> Generator[Any, None, None]:
        loader = self.source.loader(self.options)
        while True:
            count = 0
            self._iterator = iter(loader)
            for batch in self._iterator:
                count += 1
                yield batch
            if not count:
                raise UserCodeError("the dataset is empty")

    def _pause(self) -> None:
        self._signal(signal.SIGSTOP)
        self._stopped = True

    def _resume(self) -> None:
        if self._stopped:
            self._signal(signal.SIGCONT)
            self._stopped = False

    def _signal(self, number: int) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@contextmanager
def guarded(patience: float, seconds: float) -> Iterator[None]:
    """Turn what goes wrong with loading into UserCodeError. Workers have the loader's own timeout; the one here is for what runs
    in this process, and for a block of `seconds` as a whole.
    """
    try:
        with within(1.5 * patience + 10 * seconds):
            yield
    except UserCodeError:
        raise
    except OutOfPatience:
        raise UserCodeError(f"no batch came within {1.5 * patience:.0f} s") from None
    except Exception as error:
        raise UserCodeError(told(error, patience)) from None


def told(error: Exception, patience: float) -> str:
    """What went wrong with a loader, in one line."""
    text = f"{error} {error.__cause__ or error.__context__ or ''}"
    for pattern, meaning in _KNOWN.items():
        found = re.search(pattern, text)
        if found and "Original Traceback" not in text:
            return meaning.format(patience, *found.groups())
    return words(error)


def _ended(iterator: Any) -> str:
    """What became of the worker that ended by itself, which torch does not always tell."""
    for worker in getattr(iterator, "_workers", ()):
        worker.join(0.1)
        code = worker.exitcode
        if code:
            return (
                f"a worker was killed by {signal.Signals(-code).name}"
                if code < 0
                else f"a worker ended with exit code {code}"
            )
    return ""


def end_workers() -> None:
    """Nothing that a loader started in this process is left, also where its own end failed."""
    for child in multiprocessing.active_children():
        child.kill()
        child.join(10)
    gc.collect()  # a loader whose workers are not forked has semaphores in /dev/shm, which go with it
