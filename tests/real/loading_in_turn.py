"""A training script's loading with what a profile recommends, without workers and with two, in turn, in the group that it runs in:
`loading_in_turn.py PROFILE FILE.py:CALLABLE CPU_STAT`. JSON: of each turn the seconds of each second for which the kernel stopped the
group's CPUs, counted for each of them.
"""

import json
import sys
import time
from pathlib import Path

import gputune
from gputune.benches._user_code import call

TURNS = 3
SECONDS = 1.0


def stopped_seconds(stat):
    rows = dict(map(str.split, Path(stat).read_text().splitlines()))
    return int(rows["throttled_time"]) / 1e9


def turn(dataset, arguments, stat):
    """Once every worker has delivered and what it had prepared is gone."""
    from torch.utils.data import DataLoader

    batches = iter(DataLoader(dataset, batch_size=32, **arguments))
    for _ in range(1 + 3 * arguments["num_workers"]):
        next(batches)
    before, started = stopped_seconds(stat), time.perf_counter()
    while (taken := time.perf_counter() - started) < SECONDS:
        next(batches)
    return (stopped_seconds(stat) - before) / taken


def main(profile, name, stat):
    arms = {
        "recommended": gputune.apply(profile).dataloader_kwargs(),
        "none": {"num_workers": 0},
        "two": {"num_workers": 2},
    }
    dataset = call(name)
    turns = {arm: [] for arm in arms}
    for number in range(TURNS):
        for arm in sorted(arms, reverse=number % 2 == 1):
            turns[arm].append(turn(dataset, arms[arm], stat))
    print(json.dumps(turns))


if __name__ == "__main__":
    main(*sys.argv[1:])
