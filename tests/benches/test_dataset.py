"""The user's own dataset: how many workers and what else, and one clear line where it goes wrong."""

from dataclasses import replace
from pathlib import Path

import pytest
from loaded import broken, children, good, measured

from gputune import advise, facts
from gputune.benches import dataset as bench
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.settings._shared_memory import need


@pytest.fixture(scope="module")
def machine():
    found = facts.read(Host())
    return replace(found, cpu=replace(found.cpu, budget=min(2, found.cpu.budget)))


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(bench, "PATIENCE_SECONDS", dict.fromkeys(bench.PATIENCE_SECONDS, 1.0))


def gaps(found):
    return [one.reason for one in found if isinstance(one, Gap)]


def rows(found, metric="throughput"):
    return [one for one in found if isinstance(one, Measurement) and one.metric == metric]


def choices(machine, found):
    return advise.choices(machine, [one for one in found if isinstance(one, Measurement)])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", "ValueError: cannot read sample of two lines (broken_datasets.py:24, in __getitem__)"),
        ("raises_late", "KeyError: "),
        ("hangs", "no batch came within 1 s"),
        ("killed", "a worker was killed by SIGKILL"),
        ("exits", "a worker ended with exit code 3"),
        ("crashes", "a worker was killed by"),
        ("unpicklable", "what is loaded cannot be sent to a worker that is not forked: Can't pickle local object"),
        ("unsendable", "TypeError: a batch cannot be sent from a worker to the training process: Can't pickle"),
        ("uneven", "RuntimeError: "),
        ("empty", "the dataset is empty: its length is 0"),
        ("empty_loader", "the dataset is empty: its length is 0"),
        ("ends", "the dataset is empty"),
        ("single", "an epoch is a single batch"),
        ("number", "returned 'int'"),
        ("raises_while_made", "raises_while_made() raised RuntimeError"),
        ("leaves", "leaves() called sys.exit(2)"),
    ],
)
def test_a_broken_dataset_is_one_clear_line_and_its_workers_are_gone(machine, impatient, name, says):
    found = measured(machine, broken(name))
    (reason,) = gaps(found)
    assert reason.startswith(says) or says in reason
    assert "\n" not in reason
    assert not rows(found)
    assert not children()
    assert choices(machine, found)["dataloader_workers"].value == 0


@pytest.mark.parametrize("name", ["texts", "dictionaries"])
def test_texts_and_dictionaries_are_loaded_like_anything_else(machine, name):
    found = measured(machine, broken(name))
    assert not gaps(found)
    assert {row.params["workers"] for row in rows(found)} >= {0, 1}
    assert not children()


def test_what_waits_gets_more_workers_than_there_are_cpus(machine):
    found = measured(machine, good("sleeping"), seconds=6.0)
    chosen = choices(machine, found)
    assert chosen["dataloader_workers"].value > machine.cpu.budget
    assert chosen["dataloader_workers"].gain > 2
    assert "with torch's defaults" in chosen["dataloader_workers"].reason
    assert not children()


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


def test_a_stream_that_its_workers_do_not_divide_gets_none(machine):
    found = measured(machine, broken("undivided"))
    chosen = choices(machine, found)["dataloader_workers"]
    assert chosen.value == 0
    assert "get_worker_info()" in chosen.reason


def test_the_batch_size_that_is_asked_for(machine):
    (size,) = rows(measured(machine, broken("dictionaries"), seconds=1.0, batch_size=7), "batch_bytes")
    assert size.params["batch"] == 7


def short_of(machine, shm_bytes):
    return replace(machine, memory=replace(machine.memory, shm_bytes=shm_bytes, shm_free_bytes=shm_bytes))


def test_nothing_is_tried_that_shared_memory_would_not_hold(machine):
    """Six batches of 32 x 4 KiB fit: one worker with two ahead, or up to three with one, beside the two that are held."""
    small = short_of(machine, 6 * 131072)
    found = measured(small, good("sleeping"), seconds=8.0)
    sent = [row for row in rows(found) if row.params["kind"] == "dataset" and row.params.get("sent", True)]
    assert sent
    for row in sent:
        ahead = row.params["workers"] * row.params.get("prefetch_factor", 0)
        assert not ahead or (ahead + 2) * 131072 <= small.memory.shm_bytes
    chosen = choices(small, found)
    assert chosen["dataloader_workers"].value <= 3
    measurements = [one for one in found if isinstance(one, Measurement)]
    wanted = need(measurements)
    assert wanted.workers > chosen["dataloader_workers"].value, "what would be best if there were room"
    assert wanted.shm_bytes >= (wanted.workers * 2 + 2) * 131072
    finding = next(
        one for one in advise.advise(small, measurements, "cpu", created="").findings if one.check == "shm_size"
    )
    assert f"needs {wanted.mebibytes} MiB" in finding.message
    assert not children()


def test_not_even_one_batch_fits(machine):
    found = measured(short_of(machine, 100_000), good("sleeping"), seconds=4.0)
    assert choices(machine, found)["dataloader_workers"].value == 0
    assert need([one for one in found if isinstance(one, Measurement)]).workers > 1


def test_a_loader_whose_workers_are_spawned_leaves_nothing_in_shared_memory(machine):
    before = set(Path("/dev/shm").glob("sem.mp-*"))
    assert rows(measured(machine, broken("spawned")))
    assert set(Path("/dev/shm").glob("sem.mp-*")) <= before
    assert not children()
