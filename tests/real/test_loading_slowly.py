"""What takes seconds of real loading: the choices for datasets of each kind, and in a small shared memory."""

from dataclasses import replace
from pathlib import Path

import pytest
from loaded import broken, children, good, measured

import gputune
from gputune import benches, facts
from gputune.advice import dataloader_workers
from gputune.bench_process import Context, UserDataset
from gputune.benches.loading import user_dataset
from gputune.benches.loading.source import Options
from gputune.benches.loading.stream import Stream
from gputune.checks.shm_size import need
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.probing import recommending

pytestmark = [pytest.mark.real, pytest.mark.timed]


@pytest.fixture(scope="module")
def machine():
    found = facts.read(Host())
    return replace(found, cpu=replace(found.cpu, budget=min(2, found.cpu.budget)))


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    assert not children()


def measurements(found):
    return [one for one in found if isinstance(one, Measurement)]


def rows(found):
    return [row for row in measurements(found) if row.metric == "throughput"]


def gaps(found):
    return [one.reason for one in found if isinstance(one, Gap)]


def choices(machine, found):
    return recommending.choices(machine, measurements(found))


@pytest.mark.parametrize(("name", "seconds"), [("Texts", 3.0), ("Dictionaries", 3.0), ("Locked", 5.0)])
def test_what_is_loaded_like_anything_else(machine, monkeypatch, name, seconds):
    """Texts and dictionaries; and a lock that all processes share, which a worker that is stopped may hold."""
    monkeypatch.setitem(benches.load("dataset").PATIENCE_SECONDS, "standard", 6.0)
    found = measured(machine, broken(name), seconds=seconds)
    assert not gaps(found)
    assert {row.params["workers"] for row in rows(found)} >= {0, 1}


def test_what_waits_gets_more_workers_than_there_are_cpus(machine):
    found = measured(machine, good("sleeping"), seconds=6.0)
    chosen = choices(machine, found)
    assert chosen["dataloader_workers"].value > machine.cpu.budget
    assert chosen["dataloader_workers"].gain > 2
    assert "with torch's defaults" in chosen["dataloader_workers"].reason


def test_what_costs_nothing_gets_none(machine):
    found = measured(machine, good("tokens"), seconds=6.0)
    assert choices(machine, found)["dataloader_workers"].value == 0
    assert choices(machine, found)["dataloader_workers"].gain < 1


def test_a_consumer_that_takes_its_time_is_fed_with_the_fewest(machine):
    """A batch of 32 takes 128 ms to be waited for; a step takes 300."""
    found = measured(machine, good("sleeping"), seconds=6.0, step_ms=300)
    chosen = choices(machine, found)["dataloader_workers"]
    assert chosen.value == 1
    assert "a step of 300 ms waits" in chosen.reason
    assert "with torch's defaults" in chosen.reason
    assert all(row.params["workers"] <= 2 for row in rows(found)), "no more are started than are needed"


def short_of(machine, shm_bytes):
    return replace(machine, memory=replace(machine.memory, shm_bytes=shm_bytes, shm_free_bytes=shm_bytes))


def test_nothing_is_tried_that_shared_memory_would_not_hold(machine):
    """Six batches of 32 x 4 KiB fit: one worker with two ahead, or up to three with one, and two held."""
    small = short_of(machine, 6 * 131072)
    found = measured(small, good("sleeping"), seconds=8.0)
    sent = [row for row in rows(found) if row.params["kind"] == "dataset" and row.params.get("sent", True)]
    assert sent
    for row in sent:
        ahead = row.params["workers"] * row.params.get("prefetch_factor", 0)
        assert not ahead or (ahead + 2) * 131072 <= small.memory.shm_bytes
    chosen = choices(small, found)
    assert chosen["dataloader_workers"].value <= 3
    wanted = need(small, measurements(found))
    assert wanted.workers > chosen["dataloader_workers"].value, "what would be best if there were room"
    assert wanted.shm_bytes >= (wanted.workers * 2 + 2) * 131072
    profile = recommending.profile_of(small, measurements(found), "cpu", created="")
    finding = next(one for one in profile.findings if one.check == "shm_size")
    assert f"needs {wanted.shm_bytes >> 20} MiB" in finding.message


def test_a_curve_of_each_kind_that_leaves_nobody_behind(machine):
    context = Context(device="cpu", facts=machine, seconds=10.0, budget="standard")
    rows = list(benches.load("dataloader").measure(context))
    kinds = {
        kind: {row.params["workers"] for row in rows if row.params["kind"] == kind} for kind in dataloader_workers.KINDS
    }
    assert all({0, max(counts) // 2, max(counts) // 4} <= counts for counts in kinds.values())
    assert dataloader_workers.of_kind(rows, "memory") == 0
    assert dataloader_workers.of_kind(rows, "waiting") > machine.cpu.budget
    choice = recommending.choices(machine, rows)["dataloader_workers"]
    assert choice.value in kinds["decoding"]
    assert recommending.families(machine, rows)["memory"]["dataloader_workers"].value == 0


def test_a_loader_whose_workers_are_spawned_leaves_nothing_in_shared_memory():
    before = set(Path("/dev/shm").iterdir())
    profile = gputune.probe(device="cpu", only=["dataset"], dataset=UserDataset(path=broken("spawned")))
    assert {row.params.get("workers") for row in profile.measurements} >= {0, 1}
    assert set(Path("/dev/shm").iterdir()) <= before


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_samples_per_second_of_real_workers(workers):
    source = user_dataset.source_of(good("sleeping"), 4, 20.0)  # 4 ms a sample
    stream = Stream(source, Options(workers=workers))
    stream.open()
    rate = max(stream.rate(0.1) for _ in range(7))  # whatever else runs here only makes it slower
    stream.close()
    assert rate == pytest.approx(250 * max(1, workers), rel=0.35)
