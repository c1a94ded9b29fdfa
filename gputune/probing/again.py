"""Running benches again, later in the same probe: those that were disturbed, once the machine is calm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from gputune.facts import busy
from gputune.probing import recommending
from gputune.probing.plan import Job, planned
from gputune.probing.running import Lane
from gputune.progress import Progress

AGAIN_SHARE = 0.25
"""The part of a probe's time that is added for running again what was disturbed."""
AGAIN, WAITS = "running benches again", "waiting for the machine to be calm"
LOOK_SECONDS = 1.0
"""How long is watched whether the machine is calm."""


def seconds_to_run_again(jobs: Sequence[Job], seconds: float) -> float:
    """Return how long benches may run again after `seconds` of a probe; if these have no end, all of them may."""
    if math.isfinite(seconds):
        return AGAIN_SHARE * seconds
    return len(jobs) * LOOK_SECONDS + planned(jobs)


def run_again(
    lane: Lane,
    jobs: Sequence[Job],
    seconds: float,
    progress: Callable[[Progress], None],
    standing: recommending.Standing = recommending.NOTHING_STANDS,
) -> None:
    """Run again, for at most so many seconds, the jobs that provisional choices wait for, the most valuable first."""
    end = time.monotonic() + seconds
    waiting = waiting_for(lane, jobs, standing)
    while fitting := [job for job in waiting if LOOK_SECONDS + job.least <= end - time.monotonic()]:
        progress(Progress(part=AGAIN, doing=WAITS))
        others = busy.watched(lane.host, LOOK_SECONDS) or 0.0
        if job := next((job for job in fitting if not is_disturbed(lane, job, others)), None):
            waiting.remove(job)
            _run(lane, job, end, partial(_tell_again, progress))


def _tell_again(tell: Callable[[Progress], None], told: Progress) -> None:
    tell(Progress(part=AGAIN, doing=f"{told.part}, {told.doing}" if told.doing else told.part))


def waiting_for(
    lane: Lane, jobs: Sequence[Job], standing: recommending.Standing = recommending.NOTHING_STANDS
) -> list[Job]:
    """The jobs that provisional choices from the lane's measurements, beside what stands, wait for."""
    general = recommending.choices(lane.facts, lane.measurements, standing)
    own = recommending.families(lane.facts, lane.measurements, standing)
    waited_for = {bench for benches in recommending.provisional(general, own).values() for bench in benches}
    return [job for job in jobs if job.name in waited_for]


def is_disturbed(lane: Lane, job: Job, others: float) -> bool:
    """Whether others, who use so many CPUs, would disturb a job."""
    on_gpu = lane.device.startswith("cuda") and not job.traits.of_the_host
    return busy.is_busy(lane.facts.cpu, others, on_gpu=on_gpu)


def _run(lane: Lane, job: Job, end: float, progress: Callable[[Progress], None]) -> None:
    first = [row for row in lane.measurements if row.bench == job.name]
    others = [row for row in lane.measurements if row.bench != job.name]
    gaps, lane.gaps, lane.measurements = lane.gaps, [], []
    seconds = min(job.seconds, end - time.monotonic())
    lane.do([replace(job, request=replace(job.request, seconds=seconds))], progress)
    second, of_second = lane.measurements, lane.gaps
    if second and set(of_second) <= set(gaps):
        lane.measurements = [*others, *second]
        own = f"bench.{job.name}."
        lane.gaps = [*(gap for gap in gaps if not f"{gap.fact}.".startswith(own)), *of_second]
    else:  # what is missing in the second run must not cost what the first one has
        missing = [replace(gap, reason=f"run again: {gap.reason}") for gap in of_second if gap not in gaps]
        lane.measurements, lane.gaps = [*others, *first], [*gaps, *missing]
    lane.gaps = list(dict.fromkeys(lane.gaps))
