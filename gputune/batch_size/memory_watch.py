"""Watches the host's memory from the parent, so that a bench process is ended before it takes the last of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gputune.benches.batch_size import free_and_total_bytes
from gputune.host import Host

PERIOD_SECONDS = 0.05


class MemoryWatch:
    """While the block runs, call `end`, once, when fewer than `least_bytes` are left.

    It looks at what the tightest limit of the cgroup and the host leave, so shared memory, the processes that a step
    starts and whatever else runs there count too.
    """

    def __init__(self, host: Host, least_bytes: int, end: Callable[[], None]) -> None:
        self._host, self._least_bytes, self._end = host, least_bytes, end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.left_bytes: int | None = None
        """The fewest bytes that were left at any time; None where that cannot be read."""
        self.ended = False
        """Whether `end` was called."""

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            free, _ = free_and_total_bytes(self._host)
            if free is None:
                continue
            self.left_bytes = free if self.left_bytes is None else min(self.left_bytes, free)
            if free < self._least_bytes:
                self.ended = True
                self._end()
                return
