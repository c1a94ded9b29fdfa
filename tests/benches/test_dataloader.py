"""The synthetic samples: three kinds, and how many workers suit each."""

import math
import random
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from recorded import facts_of

from gputune import benches
from gputune.advice.dataloader_workers import of_kind
from gputune.bench_process import Context
from gputune.benches import _timing, dataloader
from gputune.benches.dataloader import Decoding, Tokens, Waiting
from gputune.benches.loading import worker_curve
from gputune.benches.loading.source import Options, Source


def test_a_small_shared_memory_is_a_reason_not_to_run():
    here = facts_of("cpu-only")
    small = replace(here, memory=replace(here.memory, shm_free_bytes=1 << 20))
    assert "--shm-size" in benches.load("dataloader").needs(small, "cpu")


def test_without_a_folder_for_temporary_files_workers_would_hang_and_nothing_is_measured(monkeypatch):
    bench = benches.load("dataloader")
    monkeypatch.setattr(bench, "temporary_folder", lambda: False)
    [gap] = bench.measure(Context(device="cpu", facts=facts_of("cpu-only"), seconds=1, budget="quick"))
    assert (gap.fact, "--tmpfs /tmp" in gap.reason) == ("bench.dataloader", True)


@dataclass
class SixteenCpus:
    """A loader on 16 CPUs, by a clock of its own, whose rounds scatter by a tenth."""

    source: Source
    options: Options
    start_seconds = 0.0
    now = 0.0
    noise = random.Random(0)
    rates = {
        Tokens: {0: 238_000, 1: 11_000, 2: 14_000, 4: 16_000},
        Waiting: {0: 466, 12: 5_600, 24: 11_200, 48: 13_700},
        Decoding: {0: 780, 10: 2_300, 20: 3_700, 40: 4_000},
    }
    stalled_rounds = frozenset()
    """Rounds in which decoding with any number of workers runs at half its speed, counted from 0."""

    def __post_init__(self):
        self.rounds = 0

    def open(self):
        SixteenCpus.now += self.options.workers * self.start_seconds

    def rate(self, seconds, step_seconds=0.0, batch_seconds=0.0):
        workers = self.options.workers
        kind = type(self.source.dataset)
        stalls = workers and kind is Decoding and self.rounds in self.stalled_rounds
        self.rounds += 1
        rate = self.rates[kind][workers] * self.noise.gauss(1, 0.1) * (0.5 if stalls else 1.0)
        one_round = max(1, workers) * self.source.batch_size / rate
        SixteenCpus.now += 0.02 + one_round * math.ceil(seconds / one_round)
        return rate

    def close(self, *, failed=False):
        """Nothing is left."""


SECONDS, LEAST = dataloader.SECONDS["cuda"]["standard"], dataloader.LEAST_SECONDS["cuda"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("seconds", "start_seconds"), [(SECONDS, 0.01), (SECONDS, 0.027), (LEAST, 0.027)])
def test_on_16_cpus_each_kind_has_rounds_enough_also_where_workers_start_slowly(
    monkeypatch, seconds, start_seconds, seed
):
    workers, taken = workers_on_16_cpus(monkeypatch, seconds, start_seconds, seed)
    assert workers == [0, 48, 40]
    assert taken <= seconds


@pytest.mark.parametrize("seed", range(5))
def test_decoding_takes_longer_where_one_of_its_few_rounds_was_disturbed(monkeypatch, seed):
    workers, taken = workers_on_16_cpus(monkeypatch, LEAST, 0.04, seed, stalled_rounds={1})
    assert workers == [0, 48, 40]
    assert taken <= (1 + dataloader.OVERTIME_SHARE) * LEAST


def workers_on_16_cpus(monkeypatch, seconds, start_seconds, seed, **more):
    for module in (_timing, dataloader, worker_curve):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: SixteenCpus.now))
    monkeypatch.setattr(dataloader, "free_cpus", lambda *given: 16)
    loader = type("Loader", (SixteenCpus,), {"start_seconds": start_seconds, "noise": random.Random(seed), **more})
    monkeypatch.setattr(worker_curve, "Stream", loader)
    facts, began = facts_of("nvidia-h200-x1", affinity=range(16)), SixteenCpus.now
    rows = list(dataloader.measure(Context(device="cuda:0", facts=facts, seconds=seconds, budget="standard")))
    kinds = ("memory", "waiting", "decoding")
    return [of_kind(rows, kind) for kind in kinds], SixteenCpus.now - began
