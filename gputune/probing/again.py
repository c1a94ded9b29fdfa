"""Running benches again, later in the same probe: those that were disturbed, once the machine is calm, and those whose
first time does not suffice for what they found.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from gputune import recommend
from gputune.facts import busy
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.probing.plan import LEAST_SHARE, Job
from gputune.probing.request import Progress
from gputune.probing.running import Lane
from gputune.recommend.trust import disturbance
from gputune.settings import omp_threads

AGAIN_SHARE = 0.25
"""The part of a probe's time that is added for running again what was disturbed."""
LOOK_SECONDS = 1.0
"""How long is watched whether the machine is calm."""
APART_SECONDS = 5.0
"""The least time between two runs that are to agree."""


def seconds_to_run_again(jobs: Sequence[Job], seconds: float) -> float:
    """Return how long benches may run again after so many `seconds` of a probe; where these have no end, so long that
    all of them may.
    """
    if math.isfinite(seconds):
        return AGAIN_SHARE * seconds
    return APART_SECONDS + LOOK_SECONDS + sum(job.seconds for job in jobs)


def run_again(
    lane: Lane,
    jobs: Sequence[Job],
    seconds: float,
    progress: Callable[[Progress], None],
    standing: recommend.Standing = recommend.NOTHING_STANDS,
) -> None:
    """Run again, for at most so many seconds, the jobs that provisional choices wait for, the most valuable first."""
    end = time.monotonic() + seconds
    waiting = waiting_for(lane, jobs, standing)
    while waiting:
        fitting = [job for job in waiting if LEAST_SHARE * job.seconds <= end - time.monotonic() - LOOK_SECONDS]
        if not fitting:
            return
        progress(Progress(number=1, count=len(waiting), bench=fitting[0].name, doing="waits", seconds=seconds))
        if not _is_calm(lane):
            continue
        waiting.remove(fitting[0])
        _run(lane, fitting[0], end, progress)


def waiting_for(lane: Lane, jobs: Sequence[Job], standing: recommend.Standing = recommend.NOTHING_STANDS) -> list[Job]:
    """The jobs that provisional choices from the lane's measurements, beside what stands, wait for."""
    general = recommend.choices(lane.facts, lane.measurements, standing)
    own = recommend.families(lane.facts, lane.measurements, standing)
    waited_for = {bench for benches in recommend.provisional(general, own).values() for bench in benches}
    return [job for job in jobs if job.name in waited_for]


def _is_calm(lane: Lane) -> bool:
    """Whether others leave the CPUs alone now; where that cannot be read, yes."""
    before = busy.read(lane.host)
    time.sleep(LOOK_SECONDS)
    others = busy.used_by_others(before, busy.read(lane.host))
    return others is None or not busy.is_busy(lane.facts.cpu, others)


def _run(lane: Lane, job: Job, end: float, progress: Callable[[Progress], None]) -> None:
    first = [row for row in lane.measurements if row.bench == job.name]
    others = [row for row in lane.measurements if row.bench != job.name]
    to_agree = job.name == omp_threads.BENCH and disturbance(lane.facts, first, job.name) is None
    if to_agree:
        time.sleep(APART_SECONDS)
    gaps, lane.gaps, lane.measurements = lane.gaps, [], []
    seconds = min(job.seconds, end - time.monotonic())
    lane.do([replace(job, request=replace(job.request, seconds=seconds))], progress)
    second = lane.measurements
    lane.measurements = [*others, *merged(first, second, to_agree=to_agree)]
    kept = [gap for gap in gaps if to_agree or not second or not _is_of(gap, job)]
    lane.gaps = list(dict.fromkeys([*kept, *lane.gaps]))


def _is_of(gap: Gap, job: Job) -> bool:
    return f"{gap.fact}.".startswith(f"bench.{job.name}.")


def merged(first: Sequence[Measurement], second: Sequence[Measurement], *, to_agree: bool) -> list[Measurement]:
    """The rows to keep of a bench that ran twice: the second's, or, told apart, those of both, which are to agree."""
    if not to_agree:
        return list(second or first)
    return [*first, *(replace(row, params={**row.params, omp_threads.TIME: 2}) for row in second)]
