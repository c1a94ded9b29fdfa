"""All GPUs of one model at once, a bench process each, and the one profile that holds for them.

First they are compared in steady load, all at the same time, since they share power and air. Then each runs the benches
of the budget, again all at once; what measures the host runs once, alone. Where a GPU looked slow, the comparison is
repeated at the end: by then a neighbour's passing load is gone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace

from gputune.checks.slow_gpu import suspects
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.probing import recommending
from gputune.probing.plan import PlannedBench
from gputune.probing.running import DeviceRun, run_again
from gputune.profile import Profile, differing_settings, now, representative_index
from gputune.progress import Progress

SHORT_SECONDS = 0.2
"""How long an interrupt may go unseen."""
COMPARISON = "side_by_side"


def measure_together(
    runs: Sequence[DeviceRun],
    entries: Sequence[PlannedBench],
    progress: Callable[[Progress], None],
    seconds: float,
    standing: recommending.Standing,
) -> list[Measurement]:
    """Fill the runs; return the host's rows, which hold for all. Disturbed ones run again within the seconds."""
    comparing = [entry for entry in entries if entry.traits.side_by_side]
    of_the_host = [entry for entry in entries if entry.traits.of_the_host]
    own = [entry for entry in entries if entry not in (*comparing, *of_the_host)]

    def counted(done: int) -> Callable[[Progress], None]:
        return lambda part: progress(
            replace(part, number=part.number + done, count=len(entries)) if part.number else part
        )

    def do(entries: Sequence[PlannedBench], done: int = 0) -> Callable[[DeviceRun], None]:
        report = counted(done)
        return lambda run: run.do(entries, report if run is runs[0] else lambda progress: None)

    with at_once(runs) as on_all:
        on_all(DeviceRun.ready)
        on_all(do(comparing))
        _number_run(runs, 1)
        on_all(do(own, len(comparing)))
        able = next((run for run in runs if run.measurements), runs[0])

        def measure_host(run: DeviceRun) -> None:
            if run is able:
                run.do(of_the_host, counted(len(comparing) + len(own)))
                run_again(run, of_the_host, seconds, progress, standing)

        on_all(measure_host)
        names = {entry.name for entry in of_the_host}
        host_rows = [row for row in able.measurements if row.bench in names]
        able.measurements = [row for row in able.measurements if row.bench not in names]
        if suspects([row for run in runs for row in run.measurements]):
            on_all(DeviceRun.ready)  # a run that needs a new process would begin when the others have finished
            on_all(do(comparing))
            _number_run(runs, 2)
    return host_rows


@contextmanager
def at_once(runs: Sequence[DeviceRun]) -> Iterator[Callable[[Callable[[DeviceRun], None]], None]]:
    """Yield a function that does something with every run at once, and waits; an interrupt ends the processes."""
    # The threads live until the end: a bench process ends with the thread that started it.
    with ThreadPoolExecutor(len(runs)) as pool:

        def on_all(do: Callable[[DeviceRun], None]) -> None:
            running = {pool.submit(do, run) for run in runs}
            while running:
                # In short waits, since a signal that comes just before this thread falls asleep does not wake it.
                ended, running = wait(running, SHORT_SECONDS, FIRST_EXCEPTION)
                for future in ended:
                    future.result()  # raises what it raised

        try:
            yield on_all
        except BaseException:
            for run in runs:
                run.process.stop()
            raise


def _number_run(runs: Sequence[DeviceRun], number: int) -> None:
    """Number the comparison's rows that have no run yet."""
    for run in runs:
        for place, row in enumerate(run.measurements):
            if row.bench == COMPARISON and "run" not in row.params:
                run.measurements[place] = replace(row, params={**row.params, "run": number})


def common_profile(
    facts: Facts,
    runs: Sequence[DeviceRun],
    host_rows: Sequence[Measurement],
    gaps: Sequence[Gap],
    standing: recommending.Standing,
) -> Profile:
    """Return, as a whole, the profile of the device whose settings most of the others share.
    A setting that another device's measurements set otherwise is a Gap, as is what that device could not measure.
    """
    comparison = [row for run in runs for row in run.measurements if row.bench == COMPARISON]
    own = {
        run.device: recommending.profile_of(
            facts,
            [*comparison, *(row for row in run.measurements if row.bench != COMPARISON), *host_rows],
            run.device,
            created=now(),
            gaps=[*gaps, *run.gaps],
            standing=standing,
        )
        for run in [run for run in runs if run.measurements] or runs[:1]
    }
    base = list(own)[representative_index(list(own.values()))]
    known = next(run.gaps for run in runs if run.device == base)
    others = ((run.device, gap) for run in runs for gap in run.gaps if gap not in known)
    of_others = [replace(gap, fact=f"{device} {gap.fact}") for device, gap in others]
    return replace(own[base], gaps=(*own[base].gaps, *of_others, *_differences(own, base)))


def _differences(own: Mapping[str, Profile], base: str) -> list[Gap]:
    devices_of: dict[str, list[str]] = {}
    for device, profile in own.items():
        for name in differing_settings(own[base], profile):
            devices_of.setdefault(name, []).append(device)
    return [
        Gap(fact=f"settings.{name}", reason=f"{', '.join(devices)} alone would have another value than {base} has")
        for name, devices in devices_of.items()
    ]
