"""The search for a batch size: the largest that fits into memory with a margin, and the one that trains fastest.

Each batch is tried in a bench process, which may run out of memory, be killed for it, hang or fail: that is an answer
too, and a fresh process goes on. There are three stages: the largest batch, the throughput, and the result once more in
a fresh process.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gputune import benches, facts, probing
from gputune.batch_size import trials
from gputune.batch_size.running import Runner
from gputune.batch_size.trials import MARGIN, BatchSizeRequest, BatchSizes, Trial
from gputune.bench_process.process import RestartingProcess
from gputune.benches import _user_code
from gputune.errors import MeasureError, UsageError
from gputune.facts import Facts, busy
from gputune.facts.busy import is_busy
from gputune.host import Host
from gputune.host.stderr import say
from gputune.measurement import Measurement
from gputune.probing.running import with_conditions
from gputune.probing.standing import disturbance
from gputune.progress import READING, Progress

__all__ = ["BatchSizeRequest", "BatchSizes", "search"]

MOST = 1 << 24
SHARES = {"largest batch": 0.6, "throughput": 0.25, "once more": 0.15}
"""The share of the seconds that each stage gets."""
_TRIED_AGAIN = 4
_TIMED_AGAIN = 2


def search(
    request: BatchSizeRequest, *, host: Host | None = None, progress: Callable[[Progress], None] = lambda progress: None
) -> BatchSizes:
    """Raises UsageError for an impossible name or number; MeasureError where no batch ran or the user's code failed."""
    _user_code.check(request.make, "batch-size")
    if not 1 <= request.start <= request.most <= MOST:
        raise UsageError(
            f"--start {request.start} --most {request.most}: nothing lies between them",
            f"give 1 <= --start <= --most <= {MOST}",
        )
    progress(Progress(part=READING))
    with RestartingProcess() as process:
        host = host or Host()
        machine = facts.read(host)
        device = probing.device_of(machine, request.device)
        missing = benches.missing(benches.load("batch_size"), machine, device)
        if missing:
            raise MeasureError(f"no batch can be tried on {device}: {missing}", "see: gputune check")
        process.measure_on(device, machine)
        _tell_of_others(machine, on_gpu=device.startswith("cuda"))
        run = _Search(request=request, machine=machine, device=device, host=host, process=process, progress=progress)
        run.start()
        run.find()
        run.time()
        run.once_more()
    return run.answer()


def _tell_of_others(machine: Facts, *, on_gpu: bool) -> None:
    cpu = machine.cpu
    if cpu.others is not None and is_busy(cpu, cpu.others, on_gpu=on_gpu):
        used = f"others use {cpu.others:.1f} of {cpu.affinity_count} CPUs"
        say(f"this machine is busy: {used}; which batch trains fastest cannot be told beside them")


@dataclass(kw_only=True)
class _Search(Runner):
    machine: Facts
    progress: Callable[[Progress], None]
    trials: list[Trial] = field(default_factory=list)
    timed: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def find(self) -> None:
        """Close in on the largest batches while there is time."""
        end = self.started + SHARES["largest batch"] * self.request.seconds
        self._report("largest batch")
        while (batch := trials.next_batch(self.trials, self.request.start, self.request.most)) is not None:
            expected = self.expected_seconds(batch)
            # What could not be tried once more within that stage's share would not be named in the end.
            late = expected > SHARES["once more"] * self.request.seconds or time.monotonic() + expected > end
            if self.trials and late:
                self.notes.append(f"the time ended before {batch} was tried: more may fit; give it more with --seconds")
                break
            self._report("largest batch", f"batch {batch}")
            self.trials.append(trial := self.try_batch(batch))
            if len(self.trials) == 1 and trial.fate in ("failed", "no end"):  # not for memory: every size would fail
                fault = f"the step failed with a batch of {batch}: {trial.why}"
                raise MeasureError(fault, "correct it, or begin with another --start")
        if trials.largest(self.trials, 0) is None:
            last = min(self.trials, key=lambda trial: trial.batch)
            raise MeasureError(
                f"not even a batch of {last.batch} ran: {last.why}", "free some memory, or make the model smaller"
            )

    def time(self) -> None:
        """Time in turn the batches that may be the fastest; where that fails, once more without the largest of them."""
        batches = trials.contenders(self.trials)
        self._report("throughput")
        for _ in range(_TIMED_AGAIN):
            if not batches:
                return
            names = ", ".join(map(str, batches))
            left = self.seconds_left() - SHARES["once more"] * self.request.seconds
            seconds = max(1.0, min(left, SHARES["throughput"] * self.request.seconds))
            self._report("throughput", names)
            before = busy.read(self.host)
            rows, failure = self.run(batches, seconds, timed=True)
            self.timed = with_conditions(rows, busy.conditions(before, busy.read(self.host)))
            if failure is None and self.timed:
                return
            why = failure.why if failure else "the time did not suffice"
            self.notes.append(f"timing {names} in turn ended: {why}")
            self.timed, batches = [], batches[:-1]

    def once_more(self) -> None:
        """In a fresh process, try the largest batch with the margin, then the largest that ran; drop what fails."""
        self._report("once more")
        self.process.kill()
        again: set[int] = set()
        for margin in (MARGIN, 0.0):
            for _ in range(_TRIED_AGAIN):
                batch = trials.largest(self.trials, margin)
                if batch is None or batch in again:
                    break
                if again and self.seconds_left() < self.expected_seconds(batch):
                    self.notes.append(f"{batch} was not tried again in a fresh process: the time ended")
                    break
                self._report("once more", f"batch {batch}")
                self.trials.append(self.try_batch(batch))
                again.add(batch)

    def answer(self) -> BatchSizes:
        most = trials.largest(self.trials)
        rows = tuple(row for row in self.timed if most and int(row.params["batch"]) <= most)
        best, disturbed = trials.best(rows), disturbance(self.machine, self.timed, "batch_size") or ""
        seeming = int(best.params["batch"]) if best else None
        is_certain = best is not None and not disturbed and trials.is_certain(rows, best)
        ran = trials.largest(self.trials, 0)
        if ran is None:
            raise MeasureError(f"no batch ran twice: {self.trials[-1].why}", "see that nothing else uses the memory")
        if ran == self.request.most:
            self.notes.append(f"nothing larger than {ran} was tried: raise it with --most")
        return BatchSizes(
            device=self.device,
            margin=MARGIN,
            largest=most,
            at_least=not trials.is_found(self.trials),
            largest_run=ran,
            fastest=seeming if is_certain else None,
            seeming=None if is_certain else seeming,
            disturbed=disturbed,
            gain=best.against(rows[0]) if best and best is not rows[0] else None,
            trials=tuple(sorted({trial.batch: trial for trial in self.trials}.values(), key=lambda trial: trial.batch)),
            timed=rows,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _report(self, stage: str, doing: str = "") -> None:
        number = list(SHARES).index(stage) + 1
        self.progress(Progress(part=stage, doing=doing, number=number, count=len(SHARES)))
