"""Standard probes in a row, on an idle host and beside busy loops on half of its CPUs: `python tests/five_probes.py`.
`python tests/five_probes.py LOOPS...` runs them beside these numbers of loops.

Printed are, for each, the seconds of each probe, the values that differ from the first probe's (whose choices stand),
those that differ where the rows of each probe are looked at alone, as with `--fresh`, and the workers for each kind of
samples; then the rates of sweeps with their standard errors, twelve seconds for each number of workers.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import mean, stdev
from typing import Any

from gpu.figures import choices_of, probe

from gputune import checks, facts
from gputune.advice import Choice
from gputune.advice.dataloader_workers import KINDS, of_kind
from gputune.benches import dataloader
from gputune.benches._timing import free_cpus, own_threads
from gputune.benches.loading.source import Options
from gputune.benches.loading.stream import Stream
from gputune.facts import Facts
from gputune.host import Host
from gputune.probing import recommending
from gputune.profile import Profile

COUNT = 5
TURNS, TURN_SECONDS = 4, 3.0
POINTS = {"decoding": (16, 24, 32, 40, 48), "memory": (0, 1), "waiting": (32, 40, 48)}


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(count)]
    try:
        time.sleep(1)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


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
    return choices_of(recommending.profile_of(machine, profile.measurements, device, created=profile.created))


def sweep(loops: int, points: Mapping[str, Sequence[int]] = POINTS) -> dict[str, dict[int, str]]:
    """Samples per second by kind and number of workers, in turns of which every second is in the reverse order."""
    rates: dict[str, dict[int, list[float]]] = {
        kind: {count: [] for count in counts} for kind, counts in points.items()
    }
    cpu = facts.read(Host(), variables=checks.variables()).cpu
    with busy_loops(loops), own_threads(free_cpus(cpu, Host())):
        for turn in range(TURNS):
            for kind, of_count in rates.items():
                for count in list(of_count)[:: -1 if turn % 2 else 1]:
                    of_count[count].append(_rate(kind, count, TURN_SECONDS))
    return {kind: {count: _with_error(each) for count, each in of_count.items()} for kind, of_count in rates.items()}


def _with_error(rates: Sequence[float]) -> str:
    return f"{mean(rates):.0f} ({stdev(rates) / math.sqrt(len(rates)):.0f})"


def _rate(kind: str, count: int, seconds: float) -> float:
    stream = Stream(dataloader.source_of(kind), Options(workers=count))
    try:
        stream.open()
        stream.rate(seconds / 6)
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
