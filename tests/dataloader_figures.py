"""The number of workers that gputune finds, against an exhaustive sweep in the same run.

`python tests/dataloader_figures.py [NAME...]`: for each dataset of six_datasets.py `gputune probe --dataset` in the standard budget;
then every number of workers from 0 to twice the CPUs for equal seconds; then what was found and the best of the sweep in turn, by
plain DataLoaders that know nothing of gputune.
"""

import os
import sys
import time
import warnings
from contextlib import closing
from pathlib import Path
from statistics import median

import six_datasets
from torch.utils.data import DataLoader, IterableDataset

from gputune import probing
from gputune.benches import UserDataset

POINT_SECONDS = float(os.environ.get("POINT_SECONDS", "0.7"))
TURN_SECONDS = 0.5
TURNS = 4


def probed(name):
    """The profile, and the seconds that the bench took."""
    first = []
    asked = UserDataset(path=f"{Path(six_datasets.__file__)}:{name}")
    request = probing.Request(device="cpu", only=["dataset"], dataset=[asked])
    profile = probing.probe(request, progress=lambda one: first.append(time.perf_counter()))
    return profile, time.perf_counter() - first[0]


def loader(name, workers, prefetch_factor=None):
    """As a user would write it."""
    made = getattr(six_datasets, name)()
    more = {"prefetch_factor": prefetch_factor, "persistent_workers": True} if workers else {}
    if isinstance(made, DataLoader):
        more |= {"batch_size": made.batch_size, "collate_fn": made.collate_fn}
        made = made.dataset
    else:
        more |= {"batch_size": 32}
    shuffle = not isinstance(made, IterableDataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DataLoader(made, shuffle=shuffle, num_workers=workers, **more)


def rate(name, workers, seconds, prefetch_factor=None):
    """Batches per second of a fresh loader, over whole rounds of its workers once their first queues are empty."""
    loading = loader(name, workers, prefetch_factor)

    def endless():
        while True:
            yield from loading

    with closing(endless()) as batches:
        for _ in range(max(1, 3 * workers)):
            next(batches)
        count, started, taken = 0, time.perf_counter(), 0.0
        while taken < seconds:
            for _ in range(max(1, workers)):
                next(batches)
            count += max(1, workers)
            taken = time.perf_counter() - started
    if workers:
        loading._iterator._shutdown_workers()
    return count / taken


def share(name, found, best, turns=TURNS):
    """How fast what was found is beside the best of the sweep, in turn."""
    rates = {"found": [], "best": []}
    for turn in range(turns):
        for which in ("found", "best") if turn % 2 else ("best", "found"):
            arguments = found if which == "found" else (best, None)
            rates[which].append(rate(name, arguments[0], TURN_SECONDS, arguments[1]))
    return median(rates["found"]) / median(rates["best"])


def compared(name):
    profile, bench_seconds = probed(name)
    cpus = profile.fingerprint.cpu_budget
    found = tuple(profile.settings[f"dataloader_{what}"].value for what in ("workers", "prefetch_factor"))
    started = time.perf_counter()
    sweep = {count: rate(name, count, POINT_SECONDS) for count in range(2 * cpus + 1)}
    swept = time.perf_counter() - started
    best = max(sweep, key=sweep.get)
    reached = share(name, found, best)
    if reached < 0.95:  # a neighbour on the machine, or the choice: more turns tell
        reached = share(name, found, best, 2 * TURNS)
    return {
        "dataset": name,
        "cpus": cpus,
        "found": found[0],
        "best": best,
        "share": reached,
        "bench_seconds": bench_seconds,
        "sweep_seconds": swept,
        "sweep": [round(sweep[count], 1) for count in sweep],
        "profile": profile,
    }


def line(one):
    return (
        f"{one['dataset']:<11} found {one['found']:>2} workers, the sweep's best is {one['best']:>2}: {one['share']:.1%} of it; "
        f"{one['bench_seconds']:.1f} s against the sweep's {one['sweep_seconds']:.1f}: "
        f"{one['bench_seconds'] / one['sweep_seconds']:.0%}"
    )


def details(one):
    yield f"    sweep (batches/s): {one['sweep']}"
    for row in one["profile"].measurements:
        if row.params.get("kind") == "dataset":
            scatter = [round(sample / row.median, 2) for sample in row.samples]
            yield f"    {row.params['workers']:>3} workers: {row.median:.0f} samples/s, {scatter}"
    for name, choice in one["profile"].settings.items():
        if name.startswith("dataloader_"):
            yield f"    {name}: {choice.value}; {choice.reason}"


if __name__ == "__main__":
    results = []
    for name in sys.argv[1:] or six_datasets.NAMES:
        results.append(compared(name))
        print(line(results[-1]), *details(results[-1]), sep="\n", flush=True)
    print(*map(line, results), sep="\n")
