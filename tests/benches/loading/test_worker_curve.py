"""Numbers of workers timed in turn: what fails is left out and said, and the others go on."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gputune import benches
from gputune.bench_process import Context
from gputune.benches import dataloader
from gputune.benches._user_code import UserCodeError
from gputune.benches.loading import worker_curve
from gputune.benches.loading.source import Options, Source
from gputune.benches.loading.worker_curve import WorkerTrial, measure
from gputune.facts.gap import Gap


@dataclass
class Loader:
    source: Source
    options: Options
    at_once = ()
    later = ()
    blocks = 0

    def open(self):
        if self.options.workers in self.at_once:
            raise UserCodeError("a worker was killed by SIGKILL", "killed")

    def rate(self, seconds, step_seconds=0.0, batch_seconds=0.0):
        self.blocks += 1
        if self.options.workers in self.later and self.blocks > 6:
            raise UserCodeError("too late")
        return 100.0 * (self.options.workers + 1)

    def close(self, *, failed=False):
        """Nothing is left."""


@pytest.fixture
def loaders(monkeypatch):
    return lambda **fails: monkeypatch.setattr(worker_curve, "Stream", type("Some", (Loader,), fails))


def curve(counts=(0, 4, 8, 16)):
    source = Source(dataset=[], batch_size=1)
    return measure(WorkerTrial(source=source, counts=counts, alive=32, seconds=0.5))


def test_a_number_of_workers_that_fails_does_not_cost_the_others(loaders):
    loaders(at_once=(16,))
    measured = curve()
    assert {0, 8} <= measured.rates.keys() <= {0, 4, 8}
    assert {count: (str(why), why.cause) for count, why in measured.failed.items()} == {
        16: ("a worker was killed by SIGKILL", "killed")
    }
    assert all(samples for samples in (*measured.rates.values(), *measured.rough.values()))


def test_one_that_fails_later_is_left_out_and_the_others_are_timed_to_the_end(loaders):
    loaders(later=(16,))
    measured = curve((0, 14, 16))
    assert list(measured.failed) == [16]
    assert 16 not in measured.rates
    assert len(measured.rates[14]) >= 12


def test_where_none_works_the_reason_is_raised(loaders):
    loaders(at_once=(0, 4, 8, 16))
    with pytest.raises(UserCodeError, match="SIGKILL"):
        curve()


@pytest.mark.slow
def test_the_bench_goes_on_with_the_next_kind_of_samples(loaders, two_cpus):
    loaders(at_once=(8,))
    context = Context(device="cpu", facts=two_cpus, seconds=1.0, budget="standard")
    found = list(benches.load("dataloader").measure(context))
    assert [(one.fact, one.reason) for one in found if isinstance(one, Gap)] == [
        ("bench.dataloader.waiting", "8 workers: a worker was killed by SIGKILL")
    ]
    assert {one.params["kind"] for one in found if not isinstance(one, Gap)} == {"memory", "decoding", "waiting"}
    loaders(at_once=tuple(range(64)))
    gaps = list(benches.load("dataloader").measure(context))
    assert [gap.fact for gap in gaps] == [f"bench.dataloader.{kind}" for kind in ("memory", "waiting", "decoding")]


@pytest.mark.slow
def test_the_samples_that_scatter_most_are_timed_last(loaders, two_cpus):
    loaders()
    counts = {}
    for row in dataloader.measure(Context(device="cpu", facts=two_cpus, seconds=1.0, budget="standard")):
        counts.setdefault(row.params["kind"], []).append(row.params["workers"])
    assert counts == {"memory": [0, 1, 2], "waiting": [0, 2, 4, 8], "decoding": [0, 1, 2]}
    assert list(counts)[-1] == "decoding"
