"""The bench process of one device, replaced when it dies, so that the next bench finds a fresh one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputune.bench_process.failure import BenchFailed
from gputune.bench_process.messages import Activity, BenchRequest, Start
from gputune.bench_process.process import BenchProcess
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement

FAILED_STARTS = 2
"""After so many processes in a row that never became ready, no more are started."""


class RestartingProcess:
    """One bench process at a time. The first starts on entry; `measure_on` then names the device."""

    def __init__(self, imports: Sequence[str] = ()) -> None:
        self._imports = imports
        self._process: BenchProcess | None = None
        self._start: Start
        self._ready = False
        self._failed_starts = 0
        self._why = ""
        self._stopped = False

    def __enter__(self) -> RestartingProcess:
        self._process = BenchProcess(self._imports)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.close()

    def measure_on(self, device: str, facts: Facts) -> None:
        self._start = Start(device=device, facts=facts)

    def run(
        self, request: BenchRequest, deadline_seconds: float | None = None
    ) -> Iterator[Measurement | Gap | Activity]:
        """Yield the answers of one bench. Raises BenchFailed, after which the next bench gets a fresh process.

        Without a deadline of its own a bench gets one derived from its `seconds`.
        """
        process = self.start()
        try:
            # A bench keeps to its seconds by itself; twice that, and the start of its processes, is a hang.
            yield from process.run(request, deadline_seconds or 2 * request.seconds + 30)
        except BenchFailed:
            # Also after an ordinary exception: CUDA errors stick to a process, and memory may be gone.
            process.kill()
            raise

    def kill(self) -> None:
        """End the process at once, from any thread: who waits for its answers gets BenchFailed."""
        if self._process:
            self._process.kill()

    def stop(self) -> None:
        """End the process, from any thread, and start no other."""
        self._stopped = True
        self.kill()

    def start(self) -> BenchProcess:
        """Return the process once it is ready, so that what follows takes only its own time. Raises BenchFailed."""
        if self._stopped:
            raise BenchFailed(how="stopped")
        if self._process and self._ready and self._process.alive:
            return self._process
        if self._failed_starts >= FAILED_STARTS:
            raise BenchFailed(how="not started", detail=self._why)
        if self._process is None or self._ready or self._failed_starts:
            if self._process:
                self._process.close()
            self._process = BenchProcess(self._imports)
            if self._stopped:  # by another thread, meanwhile
                self._process.kill()
        self._ready = False
        try:
            self._process.ready(self._start)
        except BenchFailed as failed:
            self._failed_starts += 1
            self._why = str(failed)
            self._process.kill()
            raise
        self._failed_starts, self._ready = 0, True
        return self._process
