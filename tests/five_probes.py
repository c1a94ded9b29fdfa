"""Standard probes in a row, on an idle host and beside busy loops on half of its CPUs: `python tests/five_probes.py`.
`python tests/five_probes.py LOOPS...` runs them beside these numbers of loops.

Printed are, for each, the seconds of each probe, the values that differ from the first probe's (whose choices stand),
those that differ where the rows of each probe are looked at alone, as with `--fresh`, and the workers for each kind of
samples; then the rates of sweeps, eight seconds for each number of workers.
"""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from gpu.figures import choices_of, probe
from real_noise import busy_loops

from gputune import checks, facts, recommend
from gputune.benches import dataloader
from gputune.benches._threads import free_cpus, own_threads
from gputune.benches.loading.source import Options
from gputune.benches.loading.stream import Stream
from gputune.facts import Facts
from gputune.host import Host
from gputune.profile import Profile
from gputune.settings import Choice
from gputune.settings.dataloader_workers import KINDS, of_kind

COUNT = 5
POINT_SECONDS = 8.0
POINTS = {"decoding": (0, 8, 16, 24, 32, 48), "memory": (0, 1, 4), "waiting": (16, 32, 48, 64)}


def in_a_row(loops: int, *options: str, count: int = COUNT) -> dict[str, Any]:
    """How so many probes differ that share one cache, beside so many busy loops."""
    with tempfile.TemporaryDirectory() as cache, busy_loops(loops):
        found = [probe(*options, environ={"XDG_CACHE_HOME": cache}) for _ in range(count)]
        machine = facts.read(Host(), variables=checks.variables())
    profiles = [profile for profile, _ in found]
    return {
        "seconds": [round(seconds, 1) for _, seconds in found],
        "differing": differing([choices_of(profile) for profile in profiles]),
        "differing alone": differing([_alone(machine, profile) for profile in profiles]),
        "workers": {kind: [of_kind(profile.measurements, kind) for profile in profiles] for kind in KINDS},
    }


def differing(probes: Sequence[Mapping[str, Choice]]) -> dict[str, list[Any]]:
    """The settings whose values are not the same in all probes; None also stands for one that a probe lacks."""
    names = dict.fromkeys(name for choices in probes for name in choices)
    values = {name: [choices[name].value if name in choices else None for choices in probes] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}


def _alone(machine: Facts, profile: Profile) -> dict[str, Choice]:
    """What the rows of a probe lead to where nothing stands."""
    device = profile.measurements[0].device
    return choices_of(recommend.profile_of(machine, profile.measurements, device, created=profile.created))


def sweep(loops: int, seconds: float = POINT_SECONDS) -> dict[str, dict[int, int]]:
    """Samples per second by kind and number of workers, in two turns, the second in the reverse order."""
    rates: dict[str, dict[int, list[float]]] = {kind: {count: [] for count in POINTS[kind]} for kind in POINTS}
    cpu = facts.read(Host(), variables=checks.variables()).cpu
    with busy_loops(loops):
        for direction in (1, -1):
            for kind, of_count in rates.items():
                for count in list(of_count)[::direction]:
                    with own_threads(free_cpus(cpu, Host())):
                        of_count[count].append(_rate(kind, count, seconds / 2))
    return {kind: {count: round(mean(both)) for count, both in of_count.items()} for kind, of_count in rates.items()}


def _rate(kind: str, count: int, seconds: float) -> float:
    stream = Stream(dataloader.source_of(kind), Options(workers=count))
    try:
        stream.open()
        stream.rate(seconds / 8)
        return stream.rate(seconds)
    finally:
        stream.close()


def main() -> None:
    half = len(os.sched_getaffinity(0)) // 2
    for loops in [int(one) for one in sys.argv[1:]] or [0, half]:
        print(f"\nbeside {loops} loops")
        for name, value in {**in_a_row(loops), "sweep": sweep(loops)}.items():
            print(f"  {name}: {value}", flush=True)


if __name__ == "__main__":
    main()
