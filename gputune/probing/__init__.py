"""Probing: read the facts, run the benches in worker processes, ask for advice.

A bench that fails, hangs, is killed or runs out of memory becomes a Gap with its reason; a fresh worker goes on with the
next one, and the profile is still written. One device is measured, or all GPUs of the node at once (`together`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from gputune import checks, facts, recommend
from gputune.bench_process.restarting import RestartingProcess
from gputune.errors import MeasureError
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.probing.plan import check_names, plan
from gputune.probing.request import ALL, Progress, Request, device_of, devices_of
from gputune.probing.running import Lane
from gputune.probing.together import common_profile, measure_together, own_profiles
from gputune.profile import Profile

__all__ = ["Progress", "Request", "device_of", "probe"]


def probe(
    request: Request,
    *,
    host: Host | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    each: Callable[[str, Profile], None] = lambda device, profile: None,
) -> Profile:
    """Measure this machine and say what follows. Where all GPUs are measured, `each` is given every device with its own profile.

    Raises UsageError for an unknown name, MeasureError when there is nothing to measure with or nothing could be measured.
    """
    check_names(request)
    host = host or Host()
    with RestartingProcess() as workers:
        found = facts.read(host, variables=checks.variables())
        if request.device == ALL:
            lanes, host_rows, left_out = _lanes_of_all(request, host, found, workers, progress)
            own = own_profiles(found, lanes, host_rows, created=_now())
            for device, profile in own.items():
                each(device, profile)
            return common_profile(own, lanes, left_out)
        where = device_of(found, request.device)
        lane = Lane.on(where, workers, found, host)
        lane.do(plan(where, request), progress)
        _check_measured([lane], lane.measurements)
        return recommend.profile_of(found, lane.measurements, where, created=_now(), gaps=lane.gaps)


def _lanes_of_all(
    request: Request, host: Host, found: Facts, first: RestartingProcess, progress: Callable[[Progress], None]
) -> tuple[list[Lane], list[Measurement], list[Gap]]:
    """What was measured on each device and of the host, and the devices that were left out."""
    devices, left_out = devices_of(found)
    with ExitStack() as stack:
        workers = [first, *(stack.enter_context(RestartingProcess()) for _ in devices[1:])]
        lanes = [Lane.on(where, one, found, host) for where, one in zip(devices, workers, strict=True)]
        host_rows = measure_together(lanes, plan(devices[0], request), progress)
    _check_measured(lanes, [*host_rows, *(row for lane in lanes for row in lane.measurements)])
    return lanes, host_rows, left_out


def _check_measured(lanes: Sequence[Lane], measured: Sequence[Measurement]) -> None:
    if measured:
        return
    reasons = dict.fromkeys(gap.reason for lane in lanes for gap in lane.gaps)
    where = ", ".join(lane.place.device for lane in lanes)
    raise MeasureError(
        f"nothing could be measured on {where}: {'; '.join(reasons) or 'no bench fits this budget'}",
        "see: gputune check",
    )


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
