"""Runs benches on one device, one after the other; and again, later in the same probe, those that were disturbed."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Self

from gputune import benches
from gputune.bench_process.messages import Activity, BenchFailed
from gputune.bench_process.process import RestartingProcess
from gputune.facts import Facts, busy, memory
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.probing import recommending
from gputune.probing.plan import PlannedBench, fitting, left_out, planned
from gputune.progress import Progress

WHOLE_BENCH: dict[str, Callable[[list[float]], float]] = {
    "pcie_generation": max,
    "gpu_processes": median_low,  # NVML goes on listing a process for a moment after its end
    "other_sm_percent": max,
}
"""Conditions that are kept once a bench, in its first row, and how the values of all its rows become one."""
AGAIN_SHARE = 0.25
"""The part of a probe's time that is added for running again what was disturbed."""
AGAIN, WAITS = "running benches again", "waiting for the machine to be calm"
LOOK_SECONDS = 1.0
"""How long is watched whether the machine is calm."""


@dataclass(slots=True, kw_only=True)
class DeviceRun:
    process: RestartingProcess
    facts: Facts
    device: str
    host: Host
    measurements: list[Measurement] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @classmethod
    def on(cls, device: str, process: RestartingProcess, facts: Facts, host: Host) -> Self:
        process.measure_on(device, facts)
        return cls(process=process, facts=facts, device=device, host=host)

    def do(self, entries: Sequence[PlannedBench], progress: Callable[[Progress], None], ends: float = math.inf) -> None:
        """Run the entries in turn until `ends` (monotonic), dividing the time that is left anew. A failure is a Gap."""
        reasons = {entry.name: benches.missing(entry.bench, self.facts, self.device) for entry in entries}
        self.gaps += [Gap(fact=f"bench.{name}", reason=reason) for name, reason in reasons.items() if reason]
        left = [entry for entry in entries if not reasons[entry.name]]
        count = len(left)
        self.ready()
        while fitted := fitting(left, ends - time.monotonic()) or (cheapest(left) if len(left) == count else []):
            entry = fitted[0]
            begun, before = count - len(left) + 1, time.monotonic()
            self._run(entry, Progress(part=entry.name, number=begun, count=count), progress)
            if entry.traits.user_code:
                self.process.kill()
            if not entry.shares_the_budget:
                ends += time.monotonic() - before
            left = [other for other in left if other.name != entry.name]
        self.gaps += left_out(left)

    def ready(self) -> None:
        """Wait until the process is ready, so that what follows takes only its own time."""
        with suppress(BenchFailed):  # the first bench will fail with the same reason
            self.process.start()

    def _run(self, entry: PlannedBench, begun: Progress, progress: Callable[[Progress], None]) -> None:
        progress(begun)
        rows: list[Measurement] = []
        before = latest = busy.read(self.host)
        kills_before = memory.oom_kills(self.host)
        try:
            for answer in self.process.run(entry.request):
                if isinstance(answer, Activity):
                    progress(replace(begun, doing=answer.text))
                    latest = busy.read(self.host)
                elif isinstance(answer, Gap):
                    self.gaps.append(self._explained(answer, kills_before))
                else:
                    rows.append(answer)
            latest = busy.read(self.host)
        except BenchFailed as failed:  # the CPU times of the dead process are lost, so the reading before counts
            gap = Gap(fact=f"bench.{entry.name}", reason=str(failed), cause=failed.cause)
            self.gaps.append(self._explained(gap, kills_before))
        self.measurements += with_conditions(rows, busy.conditions(before, latest))

    def _explained(self, gap: Gap, kills_before: int | None) -> Gap:
        """Where a process was killed, add what the kernel's count of OOM kills since before the bench says."""
        if gap.cause != "killed":
            return gap
        kills = memory.oom_kills(self.host)
        if kills_before is None or kills is None:
            return replace(gap, reason=f"{gap.reason}, as the kernel does where memory runs out")
        if kills <= kills_before:
            return gap
        limit, total = self.facts.memory.limit_bytes, self.facts.memory.total_bytes
        size = f"the limit here is {limit >> 20} MiB" if limit else f"the host has {(total or 0) >> 20} MiB"
        return replace(gap, reason=f"{gap.reason}; the kernel's OOM killer did it, since the memory ran out: {size}")


def cheapest(entries: Sequence[PlannedBench]) -> list[PlannedBench]:
    return [entry.with_seconds(entry.least) for entry in entries[:1]]


def with_conditions(rows: list[Measurement], of_host: dict[str, float]) -> list[Measurement]:
    """Return the rows of one bench; only the first keeps what holds for all: WHOLE_BENCH and the host's conditions."""
    if not rows:
        return rows
    values = {name: [row.conditions[name] for row in rows if name in row.conditions] for name in WHOLE_BENCH}
    whole = {name: WHOLE_BENCH[name](seen) for name, seen in values.items() if seen}
    own = [{name: value for name, value in row.conditions.items() if name not in WHOLE_BENCH} for row in rows]
    own[0] |= whole | of_host
    return [replace(row, conditions=conditions) for row, conditions in zip(rows, own, strict=True)]


def seconds_to_run_again(entries: Sequence[PlannedBench], seconds: float) -> float:
    """Return how long benches may run again after `seconds` of a probe; if these have no end, all of them may."""
    every = len(entries) * LOOK_SECONDS + planned(entries)
    return AGAIN_SHARE * seconds if math.isfinite(seconds) else every


def run_again(
    run: DeviceRun,
    entries: Sequence[PlannedBench],
    seconds: float,
    progress: Callable[[Progress], None],
    standing: recommending.Standing = recommending.NOTHING_STANDS,
) -> None:
    """Run again, for at most `seconds`, the entries that provisional choices wait for, the most valuable first."""
    end = time.monotonic() + seconds
    waiting = waiting_for(run, entries, standing)
    while fitting := [entry for entry in waiting if LOOK_SECONDS + entry.least <= end - time.monotonic()]:
        progress(Progress(part=AGAIN, doing=WAITS))
        others = busy.watched(run.host, LOOK_SECONDS) or 0.0
        if entry := next((entry for entry in fitting if not is_disturbed(run, entry, others)), None):
            waiting.remove(entry)
            _run_again(run, entry, end, progress)


def waiting_for(run: DeviceRun, entries: Sequence[PlannedBench], standing: recommending.Standing) -> list[PlannedBench]:
    """The entries that provisional choices from the run's measurements, beside what stands, wait for."""
    general = recommending.choices(run.facts, run.measurements, standing)
    own = recommending.families(run.facts, run.measurements, standing)
    waited_for = {bench for benches in recommending.provisional(general, own).values() for bench in benches}
    return [entry for entry in entries if entry.name in waited_for]


def is_disturbed(run: DeviceRun, entry: PlannedBench, others: float) -> bool:
    on_gpu = run.device.startswith("cuda") and not entry.traits.of_the_host
    return busy.is_busy(run.facts.cpu, others, on_gpu=on_gpu)


def _run_again(run: DeviceRun, entry: PlannedBench, end: float, progress: Callable[[Progress], None]) -> None:
    def tell(told: Progress) -> None:
        progress(Progress(part=AGAIN, doing=f"{told.part}, {told.doing}" if told.doing else told.part))

    first = [row for row in run.measurements if row.bench == entry.name]
    others = [row for row in run.measurements if row.bench != entry.name]
    gaps, run.gaps, run.measurements = run.gaps, [], []
    run.do([entry.with_seconds(min(entry.seconds, end - time.monotonic()))], tell)
    second, of_second = run.measurements, run.gaps
    if second and set(of_second) <= set(gaps):
        run.measurements = [*others, *second]
        own = f"bench.{entry.name}."
        run.gaps = [*(gap for gap in gaps if not f"{gap.fact}.".startswith(own)), *of_second]
    else:  # what is missing in the second run must not cost what the first one has
        missing = [replace(gap, reason=f"run again: {gap.reason}") for gap in of_second if gap not in gaps]
        run.measurements, run.gaps = [*others, *first], [*gaps, *missing]
    run.gaps = list(dict.fromkeys(run.gaps))
