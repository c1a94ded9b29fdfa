"""Runs batches of the user's step in a bench process, and turns every way in which that can end into a Trial."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from gputune.batch_size.trials import MARGIN, BatchSizeRequest, Trial
from gputune.bench_process import Batches
from gputune.bench_process.messages import BenchFailed, BenchRequest
from gputune.bench_process.process import RestartingProcess
from gputune.benches import batch_size
from gputune.errors import MeasureError
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement

SHORTEST_DEADLINE_SECONDS = 10.0
PATIENCE = 20
"""A trial that takes so many times as long as the slowest before it, and ten seconds, is a hang."""
PERIOD_SECONDS = 0.05


class MemoryWatch:
    """While the block runs, call `end`, once, when the tightest of cgroup and host leaves fewer than `least_bytes`."""

    def __init__(self, host: Host, least_bytes: int, end: Callable[[], None]) -> None:
        self._host, self._least_bytes, self._end = host, least_bytes, end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.left_bytes: int | None = None
        """The fewest bytes that were left at any time; None where that cannot be read."""
        self.ended = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            free, _ = batch_size.free_and_total_bytes(self._host)
            if free is None:
                continue
            self.left_bytes = free if self.left_bytes is None else min(self.left_bytes, free)
            if free < self._least_bytes:
                self.ended = True
                self._end()
                return


@dataclass(kw_only=True)
class Runner:
    """The bench process of one search, and the clock of the search."""

    request: BatchSizeRequest
    device: str
    host: Host
    process: RestartingProcess
    rate: float | None = None
    """Samples per second of the last batch that ran."""
    started: float = 0.0
    """By the monotonic clock, once the process was ready: importing torch may take a minute from a cold disk."""
    _slowest: float | None = None
    _least_bytes: int = 0
    """When less of the host's memory is left, the process is ended."""

    def start(self) -> None:
        """Raises MeasureError where no process gets ready."""
        free, _ = batch_size.free_and_total_bytes(self.host)
        self._least_bytes = int(MARGIN * (free or 0))
        try:
            self.process.start()
        except BenchFailed as failed:
            raise MeasureError(str(failed), "see: gputune check") from None
        self.started = time.monotonic()

    def seconds_left(self) -> float:
        return self.started + self.request.seconds - time.monotonic()

    def expected_seconds(self, batch: int) -> float:
        """Return how long the two steps of a trial take, at the rate of the last batch that ran."""
        return 2 * batch / self.rate if self.rate else 0.0

    def try_batch(self, batch: int) -> Trial:
        rows, failure = self.run([batch], SHORTEST_DEADLINE_SECONDS)
        if failure or not rows:
            return failure or Trial(batch=batch, fate="failed", why="it gave no answer")
        conditions = rows[0].conditions
        self._slowest = max(self._slowest or 0.0, conditions["seconds"])
        self.rate = rows[0].median
        sizes: dict[str, Any] = {name: int(conditions[name]) for name in conditions if name.endswith("_bytes")}
        return Trial(batch=batch, rate=self.rate, **sizes)

    def run(
        self, batches: Sequence[int], seconds: float, *, timed: bool = False
    ) -> tuple[list[Measurement], Trial | None]:
        """Try each batch, or time them in turn for about so many seconds. Return their rows, and the largest batch's
        Trial if it failed. Raises MeasureError where there is no step.
        """
        largest = batches[-1]
        request = BenchRequest(
            bench=batch_size.__name__,
            seconds=seconds,
            budget="standard",
            batches=Batches(make=self.request.make, sizes=tuple(batches), timed=timed),
        )
        rows: list[Measurement] = []
        failure: Trial | None = None
        with MemoryWatch(self.host, self._least_bytes, self.process.kill) as watch:
            try:
                for answer in self.process.run(request, self._deadline(largest) + (3 * seconds if timed else 0)):
                    if isinstance(answer, Measurement):
                        rows.append(answer)
                    elif isinstance(answer, Gap):
                        failure = _refused(largest, answer)
            except BenchFailed as failed:
                failure = failure or died(largest, failed, ended_by_watch=watch.ended)
        if not self.device.startswith("cuda"):
            rows = [_with_least(row, watch.left_bytes) for row in rows]
        return rows, failure

    def _deadline(self, batch: int) -> float:
        """The seconds that are left, or more where a batch that ran before needs them; at most what PATIENCE allows."""
        left = max(SHORTEST_DEADLINE_SECONDS + 3 * self.expected_seconds(batch), self.seconds_left())
        return left if self._slowest is None else min(left, SHORTEST_DEADLINE_SECONDS + PATIENCE * self._slowest)


def _refused(batch: int, gap: Gap) -> Trial:
    if gap.fact == batch_size.UNUSABLE:
        raise MeasureError(gap.reason, "give a function without arguments that returns step(batch_size)")
    return Trial(batch=batch, fate="no memory" if gap.fact == batch_size.NO_MEMORY else "failed", why=gap.reason)


def died(batch: int, failed: BenchFailed, *, ended_by_watch: bool) -> Trial:
    """Return the Trial of a batch whose process ended. SIGKILL counts as lack of memory: the kernel sends it."""
    if ended_by_watch:
        return Trial(batch=batch, fate="no memory", why="ended before it took the last of the memory")
    if failed.cause == "killed":
        return Trial(batch=batch, fate="no memory", why="killed by SIGKILL, as where memory runs out")
    return Trial(batch=batch, fate="no end" if failed.how == "deadline" else "failed", why=str(failed))


def _with_least(row: Measurement, left_bytes: int | None) -> Measurement:
    """Lower `left_bytes` to what the watch saw: a step may start processes, whose memory the bench does not see."""
    if left_bytes is None or "left_bytes" not in row.conditions:
        return row
    return replace(row, conditions={**row.conditions, "left_bytes": min(row.conditions["left_bytes"], left_bytes)})
