"""Runs benches on one device, one after the other, and reports what became of each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median_low

from gputune import benches
from gputune.bench_process.messages import Activity, BenchFailed
from gputune.bench_process.process import RestartingProcess
from gputune.facts import Facts, busy, memory
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.probing.plan import PlannedBench, fitting, left_out
from gputune.progress import Progress

WHOLE_BENCH: dict[str, Callable[[list[float]], float]] = {
    "pcie_generation": max,
    "gpu_processes": median_low,  # NVML goes on listing a process for a moment after its end
    "other_sm_percent": max,
}
"""Conditions that are kept once a bench, in its first row, and how the values of all its rows become one."""


@dataclass(slots=True, kw_only=True)
class DeviceRun:
    """One device, the process that measures on it, and the results."""

    process: RestartingProcess
    facts: Facts
    device: str
    host: Host
    measurements: list[Measurement] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @classmethod
    def on(cls, device: str, process: RestartingProcess, facts: Facts, host: Host) -> DeviceRun:
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
    return [replace(entry, request=replace(entry.request, seconds=entry.least)) for entry in entries[:1]]


def with_conditions(rows: list[Measurement], of_host: dict[str, float]) -> list[Measurement]:
    """Return the rows of one bench; only the first keeps what holds for all: WHOLE_BENCH and the host's conditions."""
    if not rows:
        return rows
    values = {name: [row.conditions[name] for row in rows if name in row.conditions] for name in WHOLE_BENCH}
    whole = {name: WHOLE_BENCH[name](seen) for name, seen in values.items() if seen}
    own = [{name: value for name, value in row.conditions.items() if name not in WHOLE_BENCH} for row in rows]
    own[0] |= whole | of_host
    return [replace(row, conditions=conditions) for row, conditions in zip(rows, own, strict=True)]
