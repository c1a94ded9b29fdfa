"""All GPUs of one kind at once, a worker each, and the one profile that is common to them.

First they are held against each other in steady load, all at the same time, since they share power and air. Then each runs
the benches of the budget, all at once again; what measures the host is run once, alone. Where a GPU looked slow, the first
comparison is made again at the end: what was a neighbour's passing load is gone by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace

from gputune import recommend
from gputune.bench_process.process import BenchFailed
from gputune.checks.slow_gpu import suspects
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.probing.plan import Job
from gputune.probing.request import Progress
from gputune.probing.running import Lane
from gputune.profile import Profile, differing_settings, representative_index

SHORT_SECONDS = 0.2
"""How long an interrupt may go unseen."""


def measure_together(
    lanes: Sequence[Lane], jobs: Sequence[Job], progress: Callable[[Progress], None]
) -> list[Measurement]:
    """Fill the lanes; the rows of what measures the host are returned, once for all."""
    side_by_side = [job for job in jobs if job.is_("SIDE_BY_SIDE")]
    of_the_host = [job for job in jobs if job.is_("OF_THE_HOST")]
    own = [job for job in jobs if job not in (*side_by_side, *of_the_host)]

    def told(before: int) -> Callable[[Progress], None]:
        """The numbers of a part are those of the whole."""
        return lambda part: progress(replace(part, number=part.number + before, count=len(jobs)))

    with at_once(lanes) as on_all:
        on_all(ready)
        on_all(lambda lane: lane.do(side_by_side, _teller(lane, lanes, told(0))))
        _numbered(lanes, 1)
        on_all(lambda lane: lane.do(own, _teller(lane, lanes, told(len(side_by_side)))))
        able = next((lane for lane in lanes if lane.measurements), lanes[0])
        before = len(able.measurements)
        on_all(lambda lane: lane.do(of_the_host if lane is able else [], told(len(jobs) - len(of_the_host))))
        host_rows = able.measurements[before:]
        del able.measurements[before:]
        if suspects([row for lane in lanes for row in lane.measurements]):
            on_all(ready)  # one may have a new worker, and would begin when the others have ended
            on_all(lambda lane: lane.do(side_by_side, _teller(lane, lanes, told(0))))
            _numbered(lanes, 2)
    return host_rows


@contextmanager
def at_once(lanes: Sequence[Lane]) -> Iterator[Callable[[Callable[[Lane], None]], None]]:
    """Give a function that does something with every lane, at once, and waits for all. When this thread is interrupted, the
    workers are ended, and with them what the others wait for.
    """
    # The threads live until the end: a worker ends with the thread that started it.
    with ThreadPoolExecutor(len(lanes)) as pool:

        def on_all(do: Callable[[Lane], None]) -> None:
            running = {pool.submit(do, lane) for lane in lanes}
            while running:
                # In short waits, since a signal that comes just before this thread falls asleep does not wake it.
                ended, running = wait(running, SHORT_SECONDS, FIRST_EXCEPTION)
                for one in ended:
                    one.result()  # raises what it raised

        try:
            yield on_all
        except BaseException:
            for lane in lanes:
                lane.workers.stop()
            raise


def ready(lane: Lane) -> None:
    with suppress(BenchFailed):  # the first bench will say so
        lane.workers.start()


def _teller(lane: Lane, lanes: Sequence[Lane], progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """The first device tells where all of them stand."""
    return progress if lane is lanes[0] else lambda progress: None


def _numbered(lanes: Sequence[Lane], run: int) -> None:
    """Say of the rows that were taken side by side in which run that was."""
    for lane in lanes:
        lane.measurements[:] = [
            replace(row, params={**row.params, "run": run})
            if row.bench == "side_by_side" and "run" not in row.params
            else row
            for row in lane.measurements
        ]


def own_profiles(
    found: Facts, lanes: Sequence[Lane], host_rows: Sequence[Measurement], *, created: str
) -> dict[str, Profile]:
    """By device what its own measurements come to, beside every device's steady load; none of one that gave nothing."""
    beside = [row for lane in lanes for row in lane.measurements if row.bench == "side_by_side"]
    return {
        lane.place.device: recommend.profile_of(
            found,
            [*beside, *(row for row in lane.measurements if row.bench != "side_by_side"), *host_rows],
            lane.place.device,
            created=created,
            gaps=lane.gaps,
        )
        for lane in [lane for lane in lanes if lane.measurements] or lanes[:1]
    }


def common_profile(own: Mapping[str, Profile], lanes: Sequence[Lane], gaps: Sequence[Gap]) -> Profile:
    """The profile of the device whose settings most of the others share, as a whole.

    Where another device's measurements say something else of a setting, that is a Gap, and so is what it could not measure.
    """
    devices, profiles = list(own), list(own.values())
    base = devices[representative_index(profiles)]
    more = [*gaps, *_of_others(lanes, base), *_differences(own, base)]
    return replace(own[base], gaps=(*own[base].gaps, *more))


def _of_others(lanes: Sequence[Lane], base: str) -> list[Gap]:
    bases = next(lane.gaps for lane in lanes if lane.place.device == base)
    return [
        Gap(fact=f"{lane.place.device} {gap.fact}", reason=gap.reason)
        for lane in lanes
        if lane.place.device != base
        for gap in lane.gaps
        if gap not in bases
    ]


def _differences(own: Mapping[str, Profile], base: str) -> list[Gap]:
    """By setting, the devices whose own measurements say otherwise."""
    odd: dict[str, list[str]] = {}
    for device, profile in own.items():
        for name in differing_settings(own[base], profile):
            odd.setdefault(name, []).append(device)
    return [
        Gap(fact=f"settings.{name}", reason=f"{', '.join(devices)} alone would have another value than {base} has")
        for name, devices in odd.items()
    ]
