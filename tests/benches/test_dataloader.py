"""The synthetic samples: three kinds, and how many workers suit each."""

from dataclasses import replace

import pytest

from gputune import benches, facts
from gputune.host import Host


@pytest.fixture(scope="module")
def machine():
    found = facts.read(Host())
    return replace(found, cpu=replace(found.cpu, budget=min(2, found.cpu.budget)))


def test_a_small_shared_memory_is_a_reason_not_to_run(machine):
    small = replace(machine, memory=replace(machine.memory, shm_free_bytes=1 << 20))
    assert "--shm-size" in benches.load("dataloader").needs(small, "cpu")
