"""Running benches again, later in the same probe: those that were disturbed, once the machine is calm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from gputune.facts import busy
from gputune.probing import recommending
from gputune.probing.plan import PlannedBench, planned
from gputune.probing.running import DeviceRun
from gputune.progress import Progress

AGAIN_SHARE = 0.25
"""The part of a probe's time that is added for running again what was disturbed."""
AGAIN, WAITS = "running benches again", "waiting for the machine to be calm"
LOOK_SECONDS = 1.0
"""How long is watched whether the machine is calm."""


def seconds_to_run_again(entries: Sequence[PlannedBench], seconds: float) -> float:
    """Return how long benches may run again after `seconds` of a probe; if these have no end, all of them may."""
    if math.isfinite(seconds):
        return AGAIN_SHARE * seconds
    return len(entries) * LOOK_SECONDS + planned(entries)


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
            _run(run, entry, end, partial(_tell_again, progress))


def _tell_again(tell: Callable[[Progress], None], told: Progress) -> None:
    tell(Progress(part=AGAIN, doing=f"{told.part}, {told.doing}" if told.doing else told.part))


def waiting_for(
    run: DeviceRun,
    entries: Sequence[PlannedBench],
    standing: recommending.Standing = recommending.NOTHING_STANDS,
) -> list[PlannedBench]:
    """The entries that provisional choices from the run's measurements, beside what stands, wait for."""
    general = recommending.choices(run.facts, run.measurements, standing)
    own = recommending.families(run.facts, run.measurements, standing)
    waited_for = {bench for benches in recommending.provisional(general, own).values() for bench in benches}
    return [entry for entry in entries if entry.name in waited_for]


def is_disturbed(run: DeviceRun, entry: PlannedBench, others: float) -> bool:
    """Whether others, who use so many CPUs, would disturb a entry."""
    on_gpu = run.device.startswith("cuda") and not entry.traits.of_the_host
    return busy.is_busy(run.facts.cpu, others, on_gpu=on_gpu)


def _run(run: DeviceRun, entry: PlannedBench, end: float, progress: Callable[[Progress], None]) -> None:
    first = [row for row in run.measurements if row.bench == entry.name]
    others = [row for row in run.measurements if row.bench != entry.name]
    gaps, run.gaps, run.measurements = run.gaps, [], []
    seconds = min(entry.seconds, end - time.monotonic())
    run.do([replace(entry, request=replace(entry.request, seconds=seconds))], progress)
    second, of_second = run.measurements, run.gaps
    if second and set(of_second) <= set(gaps):
        run.measurements = [*others, *second]
        own = f"bench.{entry.name}."
        run.gaps = [*(gap for gap in gaps if not f"{gap.fact}.".startswith(own)), *of_second]
    else:  # what is missing in the second run must not cost what the first one has
        missing = [replace(gap, reason=f"run again: {gap.reason}") for gap in of_second if gap not in gaps]
        run.measurements, run.gaps = [*others, *first], [*gaps, *missing]
    run.gaps = list(dict.fromkeys(run.gaps))
