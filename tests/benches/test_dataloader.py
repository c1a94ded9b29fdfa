"""The synthetic samples: three kinds, and how many workers suit each."""

from dataclasses import replace

import pytest
from loaded import children

from gputune import advise, benches, facts
from gputune.benches import Context
from gputune.host import Host
from gputune.settings import dataloader_workers


@pytest.fixture(scope="module")
def machine():
    found = facts.read(Host())
    return replace(found, cpu=replace(found.cpu, budget=min(2, found.cpu.budget)))


def test_a_curve_of_each_kind_that_leaves_nobody_behind(machine):
    context = Context(device="cpu", facts=machine, seconds=10.0, budget="standard")
    rows = list(benches.load("dataloader").measure(context))
    assert not children()
    kinds = {
        kind: {row.params["workers"] for row in rows if row.params["kind"] == kind} for kind in dataloader_workers.KINDS
    }
    assert all({0, 1} <= counts for counts in kinds.values())
    assert {row.params["kind"] for row in rows} == set(kinds), "the other options are for the thorough budget"
    assert dataloader_workers.of_kind(rows, "memory") == 0
    assert dataloader_workers.of_kind(rows, "waiting") > machine.cpu.budget
    choice = advise.choices(machine, rows)["dataloader_workers"]
    assert choice.value in kinds["decoding"]
    assert "0 workers for slices of memory" in choice.reason


def test_a_small_shared_memory_is_a_reason_not_to_run(machine):
    small = replace(machine, memory=replace(machine.memory, shm_free_bytes=1 << 20))
    assert "--shm-size" in benches.load("dataloader").needs(small, "cpu")
