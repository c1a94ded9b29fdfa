"""Helpers of the tests of benches, and of loading above all."""

from pathlib import Path

import psutil
from recorded import facts_of

from gputune.bench_process import Context, UserDataset
from gputune.benches import dataset
from gputune.facts.gap import Gap

TESTS = Path(__file__).parent


def on_cpu(budget="standard", seconds=1, facts=None, **named):
    """The context of a bench on a CPU: the recorded one, unless facts of another are given."""
    return Context(device="cpu", facts=facts or facts_of("cpu-only"), seconds=seconds, budget=budget, **named)


def sorted_out(found):
    """The rows, and the gaps."""
    found = list(found)
    return [one for one in found if not isinstance(one, Gap)], [one for one in found if isinstance(one, Gap)]


KEPT = ("resource_tracker", "serves_tests")
"""The process that Python keeps to clean up after spawned ones, and those that answer other tests."""


def children():
    """The processes that this one started, but for those that it keeps."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if not any(kept in " ".join(child.cmdline()) for kept in KEPT):
                found.append(child.pid)
        except psutil.Error:
            continue
    return found


def measured(machine, path, seconds=3.0, **asked):
    """The rows and gaps that the bench yields within these seconds."""
    seconds /= dataset.share_of(machine.cpu.budget)
    named = (UserDataset(path=str(path), **asked),)
    return list(dataset.measure(on_cpu(seconds=seconds, facts=machine, dataset=named)))


def broken(name):
    return f"{TESTS / 'broken_datasets.py'}:{name}"


def good(name):
    return f"{TESTS / 'six_datasets.py'}:{name}"
