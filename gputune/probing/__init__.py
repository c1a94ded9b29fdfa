"""Probing: read the facts, run the benches in bench processes, recommend settings.

A bench that fails, hangs, is killed or runs out of memory becomes a Gap with its reason; a fresh process goes on with
the next one, and the profile is still written. One device is measured, or (`together`) all GPUs of the node.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from gputune import checks, facts
from gputune.bench_process.process import RestartingProcess
from gputune.errors import MeasureError
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.probing import plan, recommending
from gputune.probing.plan import ALL, ProbeRequest, device_of
from gputune.probing.running import DeviceRun, run_again, seconds_to_run_again
from gputune.probing.together import common_profile, measure_together
from gputune.profile import Fingerprint, Profile, fingerprint, now
from gputune.progress import READING, Progress

__all__ = ["ProbeRequest", "device_of", "probe"]


def probe(
    request: ProbeRequest,
    *,
    host: Host | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    earlier: Profile | None = None,
    cached: Callable[[Fingerprint], Profile | None] = lambda here: None,
) -> Profile:
    """Measure this machine and return its profile.
    Where one device's benches are asked for by name, what an `earlier` profile of it has of the others is kept. The
    choices of the `cached` profile of this fingerprint stand unless what is measured contradicts them with certainty.
    Raises UsageError for an unknown name, MeasureError where nothing could be measured.
    """
    plan.check_names(request)
    started = time.monotonic()
    host = host or Host()
    modules = plan.imports(request)
    progress(Progress(part=READING))
    with RestartingProcess(modules) as process:
        machine = facts.read(host, variables=checks.variables())
        if request.device == ALL:
            devices, gaps = plan.devices_of(machine)
            entries, seconds = plan.plan(devices[0], request), plan.seconds_for(devices[0], request)
            fitted = plan.fitting(entries, started + seconds - time.monotonic())
            names = {entry.name for entry in fitted}
            gaps += plan.left_out([entry for entry in entries if entry.name not in names])
            standing = _standing(cached, fingerprint(machine, devices[0]))
            again = seconds_to_run_again([entry for entry in fitted if entry.traits.of_the_host], seconds)
            with ExitStack() as stack:
                others = [stack.enter_context(RestartingProcess(modules)) for _ in devices[1:]]
                runs = [DeviceRun.on(*pair, machine, host) for pair in zip(devices, [process, *others], strict=True)]
                host_rows = measure_together(runs, fitted, progress, again, standing)
            _check_measured(runs, [*host_rows, *(row for run in runs for row in run.measurements)])
            return common_profile(machine, runs, host_rows, gaps, standing)
        device = device_of(machine, request.device)
        entries, seconds = plan.plan(device, request), plan.seconds_for(device, request)
        run = DeviceRun.on(device, process, machine, host)
        again = seconds_to_run_again(entries, seconds)
        run.do(entries, progress, ends=started + seconds)
        here = fingerprint(machine, device)
        standing = _standing(cached, here)
        run_again(run, entries, again, progress, standing)
        _check_measured([run], run.measurements)
        rows, gaps = _of_other_benches(earlier, here, request)
        rows, gaps = [*rows, *run.measurements], [*gaps, *run.gaps]
        return recommending.profile_of(machine, rows, device, created=now(), gaps=gaps, standing=standing)


def _standing(cached: Callable[[Fingerprint], Profile | None], here: Fingerprint) -> recommending.Standing:
    profile = cached(here)
    return recommending.standing_of(profile, here) if profile else recommending.NOTHING_STANDS


def _of_other_benches(
    earlier: Profile | None, here: Fingerprint, request: ProbeRequest
) -> tuple[list[Measurement], list[Gap]]:
    """The rows and gaps of an earlier profile of this fingerprint whose benches this probe does not run."""
    if earlier is None or not request.only or earlier.fingerprint != here:
        return [], []
    asked = {f"bench.{name}" for name in request.only}
    gaps = [gap for gap in earlier.gaps if gap.fact.startswith("bench.")]
    return (
        [row for row in earlier.measurements if f"bench.{row.bench}" not in asked],
        [gap for gap in gaps if ".".join(gap.fact.split(".")[:2]) not in asked],
    )


def _check_measured(runs: Sequence[DeviceRun], measured: Sequence[Measurement]) -> None:
    if measured:
        return
    reasons = dict.fromkeys(gap.reason for run in runs for gap in run.gaps)
    devices = ", ".join(run.device for run in runs)
    raise MeasureError(
        f"nothing could be measured on {devices}: {'; '.join(reasons) or 'no bench fits this budget'}",
        "see: gputune check",
    )
