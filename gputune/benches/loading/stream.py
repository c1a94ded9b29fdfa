"""A loader at work: how fast its batches come, and a reason in one line where it fails.

Loaders of different arguments are timed in turn, so all of them live at once. Between its blocks a loader's workers are
stopped (SIGSTOP): otherwise they would fill their queues while another's block is timed, and a block would begin with
what they had ready.
"""

import gc
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gputune.benches._user_code import UserCodeError, words
from gputune.benches.loading.source import Options, Source
from gputune.resources.unreadable import Cause

_TORCHS_WORDS: dict[str, tuple[str, Cause | None]] = {
    r"timed out after": ("no batch came within {:.0f} s", None),
    r"[Bb]us error|shared memory|No space left": ("the batches of the workers did not fit into /dev/shm", None),
    r"killed by signal: Killed": ("a worker was killed by SIGKILL", "killed"),
    r"(killed by signal: [\w ]*\w)": ("a worker was {1}", None),
    r"(Can't pickle .*|cannot pickle .*)": ("what is loaded cannot be sent to a worker that is not forked: {1}", None),
    r"[Tt]oo many open files": ("the batches of the workers need more open files than ulimit -n allows", None),
}
"""Patterns of torch's messages when a worker ends, with the reason and the cause for a Gap."""
LONG_SECONDS = 0.7
"""A batch that takes so long is slow beside the waking of torch's threads."""


class OutOfPatience(BaseException):
    """The limit of `within` was exceeded. Not an Exception, so that the user's own handlers do not catch it."""


class Stream:
    """One loader at work. Each call raises UserCodeError for what the dataset raises, and where a worker ends."""

    def __init__(self, source: Source, options: Options) -> None:
        self.source, self.options = source, options
        self._iterator: Any = None
        self._batches = self._endless()

    def open(self) -> None:
        with guarded(self.source.patience, 0):
            for _ in range(max(1, self.options.workers)):
                self.take()
        self._signal(signal.SIGSTOP)

    def rate(self, seconds: float, step_seconds: float = 0.0, batch_seconds: float = 0.0) -> float:
        """Samples per second of whole rounds of the workers, for at least `seconds`; the consumer sleeps `step_seconds`
        a batch. Workers are timed from the moment they go on: what they had begun makes up for what they will have
        begun at the end. Otherwise the first batch is not counted unless it is slow: torch's threads must wake, or it
        may be ready.
        """
        workers = self.options.workers
        started, count, taken = time.perf_counter(), 0, 0.0
        self._signal(signal.SIGCONT)
        with guarded(self.source.stall or self.source.patience, seconds + max(1, workers) * step_seconds):
            if step_seconds or not workers:
                self.take()
                count, taken = 1, time.perf_counter() - started + step_seconds
                if workers or taken < LONG_SECONDS + step_seconds:
                    time.sleep(min(step_seconds, batch_seconds) if workers else 0)
                    started, count, taken = time.perf_counter(), 0, 0.0
            while taken < seconds:
                for _ in range(max(1, workers)):
                    self.take()
                    if step_seconds:
                        time.sleep(step_seconds)
                count += max(1, workers)
                taken = time.perf_counter() - started
        self._signal(signal.SIGSTOP)
        return count * self.source.samples / taken

    def take(self) -> Any:
        try:
            return next(self._batches)
        except RuntimeError as error:
            if "exited unexpectedly" not in str(error):
                raise
            raise _exited(self._iterator) or UserCodeError(words(error), "killed") from None

    def close(self, *, failed: bool = False) -> None:
        """End the workers; those of a loader that `failed` may hang, and are killed."""
        self._signal(signal.SIGCONT)
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

    def _signal(self, number: int) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise OutOfPatience in the block, in the main thread, when it takes longer than this."""

    def ring(number: int, frame: object) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # repeated, since a bare except may have caught the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def guarded(patience: float, seconds: float) -> Iterator[None]:
    """Raise UserCodeError where loading fails, or where the block takes longer than `seconds`."""
    try:
        with within(1.5 * patience + 10 * seconds):
            yield
    except UserCodeError:
        raise
    except OutOfPatience:
        raise UserCodeError(f"no batch came within {1.5 * patience:.0f} s") from None
    except Exception as error:
        raise failure(error, patience) from None


def failure(error: Exception, patience: float) -> UserCodeError:
    text = f"{error} {error.__cause__ or error.__context__ or ''}"
    for pattern, (reason, cause) in _TORCHS_WORDS.items():
        match = re.search(pattern, text)
        if match and "Original Traceback" not in text:
            return UserCodeError(reason.format(patience, *match.groups()), cause)
    return UserCodeError(words(error))


def _exited(iterator: Any) -> UserCodeError | None:
    """How the worker ended that ended by itself, which torch does not always say; None where no worker has failed."""
    for worker in getattr(iterator, "_workers", ()):
        worker.join(0.1)
        code = worker.exitcode
        if code and code > 0:
            return UserCodeError(f"a worker ended with exit code {code}")
        if code:
            name = signal.Signals(-code).name
            return UserCodeError(f"a worker was killed by {name}", "killed" if name == "SIGKILL" else None)
    return None


def end_workers() -> None:
    """End every process that a loader started in this one, also where the loader failed to."""
    for child in multiprocessing.active_children():
        child.kill()
        child.join(10)
    gc.collect()  # a loader whose workers are not forked has semaphores in /dev/shm, which go with it
