"""A training script's loading with what a profile recommends, and with other numbers of workers, in turn, in a group
that it enters once torch is imported: `loading_in_turn.py PROFILE FILE.py:CALLABLE GROUP WORKERS...`, where GROUP is
its folder in the cpu hierarchy. JSON: of each turn, by `recommended` or the number of workers, the seconds of each
second for which the kernel stopped the group's CPUs, counted for each of them. Where none are recommended, those turns
are the ones without workers.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch

import gputune
from gputune.benches._user_code import call

TURNS = 3
SECONDS = 1.0


def stopped_seconds(group):
    rows = dict(map(str.split, (group / "cpu.stat").read_text().splitlines()))
    return int(rows["throttled_time"]) / 1e9


def turn(dataset, arguments, group):
    """Once every worker has delivered and what it had prepared is gone."""
    batches = iter(torch.utils.data.DataLoader(dataset, batch_size=32, **arguments))
    for _ in range(1 + 3 * arguments["num_workers"]):
        next(batches)
    before, started = stopped_seconds(group), time.perf_counter()
    while (taken := time.perf_counter() - started) < SECONDS:
        next(batches)
    return (stopped_seconds(group) - before) / taken


def on_its_own_cpu(worker):
    """Where others keep a CPU busy, the workers of a group would else share one, in which none is stopped for long."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[worker % len(cpus)]})


def main(profile, name, folder, *counts):
    group = Path(folder)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    arms = {count: {"num_workers": int(count), "worker_init_fn": on_its_own_cpu} for count in counts}
    recommended = gputune.apply(profile).dataloader_kwargs()
    if recommended["num_workers"]:
        arms["recommended"] = recommended
    dataset = call(name)
    turns = {arm: [] for arm in arms}
    for number in range(TURNS):
        for arm in sorted(arms, reverse=number % 2 == 1):
            turns[arm].append(turn(dataset, arms[arm], group))
    print(json.dumps({"recommended": turns["0"], **turns}))


if __name__ == "__main__":
    main(*sys.argv[1:])
