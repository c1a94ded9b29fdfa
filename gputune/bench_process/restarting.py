"""Workers of one probe: one at a time on one device, replaced when it dies, so that the next bench finds a fresh process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gputune.bench_process.process import BenchFailed, BenchProcess

FAILED_STARTS = 2
"""After as many workers in a row that never became ready, no more are started."""


class RestartingProcess:
    """One worker at a time on one device, replaced when it dies. The first starts at once, before the device is known."""

    def __init__(self) -> None:
        self._worker: BenchProcess | None = None
        self._hello: tuple[str, Mapping[str, Any]] = ("cpu", {})
        self._ready = False
        self._failed_starts = 0
        self._why = ""
        self._stopped = False

    def __enter__(self) -> RestartingProcess:
        self._worker = BenchProcess()
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker:
            self._worker.close()

    def measure_on(self, device: str, facts: Mapping[str, Any]) -> None:
        self._hello = (device, facts)

    def start(self) -> None:
        """Wait until a worker is ready, so that what follows costs the time of its work only. Raises BenchFailed."""
        self._one_that_is_ready()

    def run(self, request: Mapping[str, Any], deadline_seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """The answers of one bench (see `BenchProcess.run`), before them `starting`. Raises BenchFailed.

        Without a deadline of its own a bench gets one by its `seconds`.
        """
        yield {"starting": request["bench"]}
        worker = self._one_that_is_ready()
        try:
            # A bench keeps to its seconds by itself; twice that, and the start of its processes, is a hang.
            yield from worker.run(request, deadline_seconds or 2 * request["seconds"] + 30)
        except BenchFailed:
            # Also after an ordinary exception: CUDA errors stick to a process, and memory may be gone.
            worker.kill()
            raise

    def kill(self) -> None:
        """End the worker at once, from whatever thread; whoever waits for its answers hears of it, and the next bench finds a
        fresh one.
        """
        if self._worker:
            self._worker.kill()

    def stop(self) -> None:
        """End the worker, from whatever thread, and start no other."""
        self._stopped = True
        self.kill()

    def _one_that_is_ready(self) -> BenchProcess:
        if self._stopped:
            raise BenchFailed("it was stopped")
        if self._worker and self._ready and self._worker.alive:
            return self._worker
        if self._failed_starts >= FAILED_STARTS:
            raise BenchFailed(f"no worker could be started: {self._why}")
        if self._worker is None or self._ready or self._failed_starts:
            if self._worker:
                self._worker.close()
            self._worker = BenchProcess()
            if self._stopped:  # meanwhile
                self._worker.kill()
        self._ready = False
        try:
            self._worker.ready(*self._hello)
        except BenchFailed as died:
            self._failed_starts += 1
            self._why = str(died)
            self._worker.kill()
            raise
        self._failed_starts, self._ready = 0, True
        return self._worker
