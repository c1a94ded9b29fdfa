"""Runs of the dataset bench that are shorter than a probe's, each to its profile: `short_runs.py FILE.py:CALLABLE
COUNT`. JSON: the profiles. What memory there is, and what the run before left of it, is read anew for each; torch is
asked once.
"""

import json
import sys
from dataclasses import asdict, replace

from gputune import benches, facts, recommend
from gputune.bench_process import Context, UserDataset
from gputune.facts import memory
from gputune.facts.gap import Gap, Gaps
from gputune.host import Host

SECONDS = 1.2


def profile(name, machine):
    found = replace(machine, memory=memory.read(Host(), Gaps()))
    context = Context(device="cpu", facts=found, seconds=SECONDS, budget="quick", dataset=(UserDataset(path=name),))
    rows = list(benches.load("dataset").measure(context))
    gaps = [row for row in rows if isinstance(row, Gap)]
    measured = [row for row in rows if not isinstance(row, Gap)]
    return recommend.profile_of(found, measured, "cpu", created="2026-11-21T12:00:00Z", gaps=gaps)


if __name__ == "__main__":
    name, count = sys.argv[1:]
    machine = facts.read(Host())
    print(json.dumps([asdict(profile(name, machine)) for _ in range(int(count))], default=str))
