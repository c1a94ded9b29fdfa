"""The search for a batch size: the largest that fits into the memory with a margin, and the one that trains fastest.

Each batch is tried in a worker process, which may run out of memory, be killed for it, hang or fail: that is an answer too,
and a fresh worker goes on. What is named in the end was tried once more in a fresh process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gputune import facts, probing
from gputune.batch_size.memory_watch import MemoryWatch
from gputune.batch_size.trials import MARGIN, Trial, best, contenders, largest, next_batch
from gputune.bench_process.process import BenchFailed, measurement_of
from gputune.bench_process.restarting import RestartingProcess
from gputune.benches import _user_code, batch_size
from gputune.errors import MeasureError, UsageError
from gputune.host import Host
from gputune.measurement import Comparison, Measurement
from gputune.probing import Progress

MOST = 1 << 24
SHARES = {"largest batch": 0.6, "throughput": 0.25, "once more": 0.15}
"""Of the seconds, by stage."""

SHORTEST_DEADLINE_SECONDS = 10.0
PATIENCE = 20
"""A trial that takes so many times as long as the slowest before it, and ten seconds, is a hang."""
_TRIED_AGAIN = 4
_TIMED_AGAIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to search: `make` names what makes the step (`path.py:callable`); `seconds` are for all of it, about,
    once torch is imported.
    """

    make: str
    device: str = "auto"
    start: int = 1
    most: int = 65536
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """What was found."""

    device: str
    margin: float
    """The share of the memory that `largest` leaves at its peak."""
    largest: int | None
    """The largest batch that leaves the margin; None where none does."""
    largest_run: int
    """The largest that ran at all."""
    fastest: int | None
    """The smallest batch within 3 % of the best throughput, of those that leave the margin; None where none could be timed."""
    gain: Comparison | None
    """How much faster that is than the smallest that was timed; None where it is that one, or where there are too few samples."""
    trials: tuple[Trial, ...]
    """By batch, of each what became of it last."""
    timed: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    """What else must be known of this answer."""

    def trial(self, batch: int) -> Trial:
        return next(trial for trial in self.trials if trial.batch == batch)


def search(
    request: Request, *, host: Host | None = None, progress: Callable[[Progress], None] = lambda progress: None
) -> BatchSizes:
    """Raises UsageError for a name or a number that cannot be; MeasureError where no batch ran or the user's code failed."""
    _user_code.check(request.make, "batch-size")
    if not 1 <= request.start <= request.most <= MOST:
        raise UsageError(
            f"--start {request.start} --most {request.most}: nothing lies between them",
            f"give 1 <= --start <= --most <= {MOST}",
        )
    with RestartingProcess() as workers:
        host = host or Host()
        found = facts.read(host)
        device = probing.device_of(found, request.device)
        missing = batch_size.needs(found, device)
        if missing:
            raise MeasureError(f"no batch can be tried on {device}: {missing}", "see: gputune check")
        workers.measure_on(device, asdict(found))
        free, _ = batch_size.free_and_total_bytes(host)
        run = _Search(request=request, device=device, host=host, workers=workers, progress=progress)
        run.least_bytes = int(MARGIN * (free or 0))
        run.find()
        run.time()
        run.once_more()
    return run.answer()


@dataclass(kw_only=True)
class _Search:
    """One search under way."""

    request: Request
    device: str
    host: Host
    workers: RestartingProcess
    progress: Callable[[Progress], None]
    least_bytes: int = 0
    """Of the host's memory: when fewer are left the worker is ended."""
    started: float = 0.0
    """By the monotonic clock, once there was a worker to work."""
    slowest: float | None = None
    trials: list[Trial] = field(default_factory=list)
    timed: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def find(self) -> None:
        """Close in on the largest batches while there is time."""
        self._say("largest batch")
        self._start()
        end = self.started + SHARES["largest batch"] * self.request.seconds
        while (batch := next_batch(self.trials, self.request.start, self.request.most)) is not None:
            expected = self._expected(batch)
            # What could not be tried once more within its share would be named for nothing.
            late = expected > SHARES["once more"] * self.request.seconds or time.monotonic() + expected > end
            if self.trials and late:
                self.notes.append(f"the time ended before {batch} was tried: more may fit; give it more with --seconds")
                break
            self._say("largest batch", f"batch {batch}")
            self.trials.append(self._try(batch))
            if len(self.trials) == 1:
                self._refuse(self.trials[0])
        if largest(self.trials, 0) is None:
            last = min(self.trials, key=lambda trial: trial.batch)
            raise MeasureError(
                f"not even a batch of {last.batch} ran: {last.why}", "free some memory, or make the model smaller"
            )

    def _start(self) -> None:
        """Importing torch may take a minute from a cold disk: the time counts from then on."""
        try:
            self.workers.start()
        except BenchFailed as died:
            raise MeasureError(str(died), "see: gputune check") from None
        self.started = time.monotonic()

    def time(self) -> None:
        """Time the batches that may be the fastest in turn; where that fails, once more without the largest of them."""
        self._say("throughput")
        batches = contenders(self.trials)
        for _ in range(_TIMED_AGAIN):
            if not batches:
                return
            self._say("throughput", ", ".join(map(str, batches)))
            seconds = max(1.0, SHARES["throughput"] * self.request.seconds)
            self.timed, failure = self._ask(batches, seconds, timed=True)
            if failure is None and self.timed:
                return
            why = failure.why if failure else "the time did not suffice"
            self.notes.append(f"timing {', '.join(map(str, batches))} in turn ended: {why}")
            self.timed, batches = [], batches[:-1]

    def once_more(self) -> None:
        """Try what is to be named in a fresh process, what leaves the margin first; what fails there is not named."""
        self._say("once more")
        self.workers.kill()
        again: set[int] = set()
        for margin in (MARGIN, 0.0):
            for _ in range(_TRIED_AGAIN):
                batch = largest(self.trials, margin)
                if batch is None or batch in again:
                    break
                if again and self._left() < self._expected(batch):
                    self.notes.append(f"{batch} was not tried again in a fresh process: the time ended")
                    break
                self._say("once more", f"batch {batch}")
                self.trials.append(self._try(batch))
                again.add(batch)

    def answer(self) -> BatchSizes:
        most = largest(self.trials)
        rows = tuple(row for row in self.timed if most and int(row.params["batch"]) <= most)
        fastest = best(rows)
        ran = largest(self.trials, 0)
        if ran is None:
            raise MeasureError(f"no batch ran twice: {self.trials[-1].why}", "see that nothing else uses the memory")
        if ran == self.request.most:
            self.notes.append(f"nothing larger than {ran} was tried: raise it with --most")
        return BatchSizes(
            device=self.device,
            margin=MARGIN,
            largest=most,
            largest_run=ran,
            fastest=int(fastest.params["batch"]) if fastest else None,
            gain=fastest.against(rows[0]) if fastest and fastest is not rows[0] else None,
            trials=tuple(sorted({trial.batch: trial for trial in self.trials}.values(), key=lambda trial: trial.batch)),
            timed=rows,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _refuse(self, first: Trial) -> None:
        """What fails at the first size for another reason than memory would fail at every size."""
        if first.fate in ("failed", "no end"):
            raise MeasureError(
                f"the step failed with a batch of {first.batch}: {first.why}",
                "correct it, or begin with another --start",
            )

    def _try(self, batch: int) -> Trial:
        rows, failure = self._ask([batch], SHORTEST_DEADLINE_SECONDS)
        if failure or not rows:
            return failure or Trial(batch=batch, fate="failed", why="it gave no answer")
        told = rows[0].conditions
        self.slowest = max(self.slowest or 0.0, told["seconds"])
        sizes: dict[str, Any] = {name: int(told[name]) for name in told if name.endswith("_bytes")}
        return Trial(batch=batch, rate=rows[0].median, **sizes)

    def _ask(
        self, batches: list[int], seconds: float, *, timed: bool = False
    ) -> tuple[list[Measurement], Trial | None]:
        """The rows, and what became of the last batch if it did not run. Raises MeasureError where there is no step."""
        request = {
            "bench": batch_size.__name__,
            "seconds": seconds,
            "budget": "standard",
            "batches": {"make": self.request.make, "sizes": batches, "timed": timed},
        }
        rows: list[Measurement] = []
        failure: Trial | None = None
        with MemoryWatch(self.host, self.least_bytes, self.workers.kill) as watch:
            try:
                for answer in self.workers.run(request, self._deadline(batches[-1]) + (3 * seconds if timed else 0)):
                    if "measurement" in answer:
                        rows.append(measurement_of(answer["measurement"]))
                    if "gap" in answer:
                        failure = _of_gap(batches[-1], **answer["gap"])
            except BenchFailed as died:
                failure = failure or _of_death(batches[-1], str(died), watch.ended)
        if not self.device.startswith("cuda"):
            rows = [_with_least(row, watch.left_bytes) for row in rows]
        return rows, failure

    def _deadline(self, batch: int) -> float:
        """What is left of the time, or more where a batch needs it that ran before; never longer than patience goes."""
        left = max(SHORTEST_DEADLINE_SECONDS + 3 * self._expected(batch), self._left())
        return left if self.slowest is None else min(left, SHORTEST_DEADLINE_SECONDS + PATIENCE * self.slowest)

    def _left(self) -> float:
        return self.started + self.request.seconds - time.monotonic()

    def _expected(self, batch: int) -> float:
        """Seconds that its two steps take, by the rate of the last batch that ran."""
        rate = next((trial.rate for trial in reversed(self.trials) if trial.rate), None)
        return 2 * batch / rate if rate else 0.0

    def _say(self, stage: str, doing: str = "") -> None:
        number = list(SHARES).index(stage) + 1
        seconds = SHARES[stage] * self.request.seconds
        self.progress(Progress(number=number, count=len(SHARES), bench=stage, doing=doing, seconds=seconds))


def _of_gap(batch: int, fact: str, reason: str) -> Trial:
    if fact == batch_size.UNUSABLE:
        raise MeasureError(reason, "give a function without arguments that returns step(batch_size)")
    return Trial(batch=batch, fate="no memory" if fact == batch_size.NO_MEMORY else "failed", why=reason)


def _of_death(batch: int, reason: str, ended: bool) -> Trial:
    """A worker that the kernel killed was killed for its memory, as far as can be told from here."""
    if ended:
        return Trial(batch=batch, fate="no memory", why="ended before it took the last of the memory")
    if "killed by SIGKILL" in reason:
        return Trial(batch=batch, fate="no memory", why="killed by SIGKILL, as where memory runs out")
    return Trial(batch=batch, fate="no end" if reason.startswith("no end") else "failed", why=reason)


def _with_least(row: Measurement, left_bytes: int | None) -> Measurement:
    """The processes that a step starts take memory too, which the worker does not see in its own."""
    if left_bytes is None or "left_bytes" not in row.conditions:
        return row
    return replace(row, conditions={**row.conditions, "left_bytes": min(row.conditions["left_bytes"], left_bytes)})
