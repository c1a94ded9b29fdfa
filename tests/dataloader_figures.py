"""The number of workers that gputune finds for a dataset of six_datasets.py, against a sweep of all in the same run.

First `gputune probe --dataset` in the standard budget. Then every number of workers from 0 to twice the CPUs for equal
seconds. Then the number that was found and the best of the sweep, in turn, by plain DataLoaders without gputune.

A comparison runs in a session of its own, as a bench does. Linux shares busy CPUs out by session (sched_autogroup), and
two threads of torch that load beside a busy loop on one of two CPUs make 8 batches a second in another session than the
loop's, and 1200 in the same one.
"""

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

import six_datasets
from torch.utils.data import DataLoader, IterableDataset

from gputune import probing
from gputune.bench_process import UserDataset
from gputune.measurement import comparison_of

POINT_SECONDS = 0.7
TURN_SECONDS, TURN_ROUNDS = 0.4, 4
TURNS, MORE_TURNS = 6, 6
REACHED = 0.95
"""The share of the best rate that a choice must reach."""


def probed(name):
    """The profile, and the seconds that the bench took."""
    first = []
    asked = UserDataset(path=f"{Path(six_datasets.__file__)}:{name}")
    request = probing.ProbeRequest(device="cpu", only=["dataset"], dataset=[asked])
    profile = probing.probe(request, progress=lambda one: first.append(time.perf_counter()))
    return profile, time.perf_counter() - first[0]


def loader(name, workers, prefetch_factor=None):
    """A DataLoader as a user would write it."""
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


def endless(loader):
    while True:
        yield from loader


def send(loader, number):
    """Send a signal to the workers of a loader that has begun."""
    for worker in getattr(loader._iterator, "_workers", ()):
        os.kill(worker.pid, number)


@contextmanager
def loading(name, workers, prefetch_factor=None):
    """A function of seconds and rounds: the batches per second of one loader, over at least as many whole rounds of its
    workers, once what they had ready is gone. The workers are stopped after each call, so that another loader can be
    timed meanwhile.
    """
    made = loader(name, workers, prefetch_factor)
    ready = 1 + (prefetch_factor or 2)  # at first, all that may be in flight

    def rate(seconds, rounds=1):
        nonlocal ready
        send(made, signal.SIGCONT)
        for _ in range(max(1, ready * workers)):
            next(batches)
        ready = 1
        count, started, taken = 0, time.perf_counter(), 0.0
        while taken < seconds or count < rounds * workers:
            for _ in range(max(1, workers)):
                next(batches)
            count += max(1, workers)
            taken = time.perf_counter() - started
        send(made, signal.SIGSTOP)
        return count / taken

    with closing(endless(made)) as batches:
        try:
            yield rate
        finally:
            send(made, signal.SIGCONT)
    if workers:
        made._iterator._shutdown_workers()


def swept(name, counts):
    """The rate of each number of workers, of a fresh loader each."""
    rates = {}
    for count in counts:
        with loading(name, count) as rate:
            rates[count] = rate(POINT_SECONDS)
    return rates


def share(name, found, best):
    """How fast what was found is beside the best of the sweep, by pairs of turns, and how fast it is at most (at 99 %,
    where there are pairs enough); 1 where it is the same. Where that is a miss, more turns tell whether it was the
    choice or a neighbour on the machine.
    """
    workers, prefetch_factor = found
    if workers == best and (not workers or prefetch_factor in (None, 2)):  # 2 is torch's default
        return 1.0, 1.0
    ratios = []
    with loading(name, *found) as of_found, loading(name, best) as of_best:
        for turns in (TURNS, MORE_TURNS):
            for turn in range(turns):
                rates = {
                    rate: rate(TURN_SECONDS, TURN_ROUNDS)
                    for rate in ((of_found, of_best) if turn % 2 else (of_best, of_found))
                }
                ratios.append(rates[of_found] / rates[of_best])
            if median(ratios) >= REACHED:
                break
    certain = comparison_of(ratios)
    return median(ratios), certain.high if certain else max(ratios)


def unsteady(choice, of_best):
    """Whether the profile says that it could not tell: no workers, for want of certainty about a gain."""
    return choice.value == 0 and choice.interval is not None and choice.interval[1] * of_best >= REACHED


_SESSION = """
import pickle, sys
from dataloader_figures import _compared
sys.stdout.buffer.write(pickle.dumps(_compared(sys.argv[1])))
"""


def compared(name):
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-P", "-c", _SESSION, name]
    done = subprocess.run(words, env=environ, start_new_session=True, stdout=subprocess.PIPE, check=True)
    return pickle.loads(done.stdout)


def _compared(name):
    profile, bench_seconds = probed(name)
    cpus = profile.fingerprint.cpu_budget
    found = tuple(profile.settings[f"dataloader_{what}"].value for what in ("workers", "prefetch_factor"))
    started = time.perf_counter()
    sweep = swept(name, range(2 * cpus + 1))
    sweep_seconds = time.perf_counter() - started
    best = max(sweep, key=sweep.get)
    of_best, at_most = share(name, found, best)
    return {
        "dataset": name,
        "cpus": cpus,
        "found": found,
        "best": best,
        "share": of_best,
        "at_most": at_most,
        "unsteady": unsteady(profile.settings["dataloader_workers"], of_best),
        "bench_seconds": bench_seconds,
        "sweep_seconds": sweep_seconds,
    }


def line(one):
    return (
        f"{one['dataset']:<11} found {one['found'][0]:>2} workers, the sweep's best is {one['best']:>2}: "
        f"{one['share']:.1%} of it, at most {one['at_most']:.1%}; "
        f"{one['bench_seconds']:.1f} s against the sweep's {one['sweep_seconds']:.1f}: "
        f"{one['bench_seconds'] / one['sweep_seconds']:.0%}"
        + (", which was too unsteady to tell" if one["unsteady"] else "")
    )
