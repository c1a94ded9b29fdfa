"""How many workers the program's own DataLoader is to have: the search of `--dataset`, over steps of the program."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from gputune.benches.dataset import MOST_WORKERS, WAITING_FACTOR
from gputune.benches.loading.worker_search import fewest, per_cpu, search
from gputune.facts import Facts
from gputune.knobs.dataloader_prefetch_factor import HELD, PREFETCH, SHARE
from gputune.live.orders import LoaderDescribed

WAITS = 0.05
"""The share of its time that a step waits for data from which on the loader is tuned."""


def most_workers(facts: Facts, loader: LoaderDescribed, ranks: int) -> int:
    """The most workers that are tried in each of so many ranks of this machine: by CPUs, batches of an epoch, and what
    /dev/shm holds.
    """
    cpus = max(1, facts.cpu.budget // ranks)
    most = min(MOST_WORKERS, round(max(WAITING_FACTOR, per_cpu(facts.cpu)) * cpus), loader.batches or MOST_WORKERS)
    shm = facts.memory.shm_free_bytes
    if shm is not None and loader.batch_bytes:
        batches = SHARE * shm / loader.batch_bytes / ranks
        most = min(most, int((batches - HELD) // PREFETCH))
    return max(0, most)


def best_workers(
    rate: Callable[[int], float], most: int, enough: float, epoch: int | None, over: Callable[[], bool] = lambda: False
) -> int:
    """The fewest workers that are nearly the best, or with which the program hardly waits. `rate` gives the steps/s
    with so many, `enough` is that of a program which never waits, `epoch` the batches of an epoch; the search ends
    where `over` says so.
    """
    rates: dict[int, list[float]] = {}
    walk = search(most, enough, epoch)
    count = next(walk)
    while True:
        rates.setdefault(count, []).append(rate(count))
        if over() and 0 in rates:
            break
        try:
            count = walk.send(rates[count][-1])
        except StopIteration:
            break
        if over():
            count = 0
    return fewest({count: [median(seen)] for count, seen in rates.items()}, enough)
