"""What takes many seconds of loading to see: how long workers take to start, and the synthetic samples' other options."""

from dataclasses import replace

import pytest
from loaded import children, good, measured

from gputune import advise, benches, facts
from gputune.benches import Context
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.settings import dataloader_workers

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def machine():
    found = facts.read(Host())
    return replace(found, cpu=replace(found.cpu, budget=min(2, found.cpu.budget)))


def rows(found):
    return [one for one in found if isinstance(one, Measurement) and one.metric == "throughput"]


def test_epochs_that_are_all_start_up_keep_their_workers(machine):
    """Opening the archive takes half a second in each worker, in each epoch."""
    found = measured(machine, good("slow_first"), seconds=12.0)
    kept = [row for row in rows(found) if row.params["kind"] == "epochs" and row.params["persistent_workers"]]
    anew = [row for row in rows(found) if row.params["kind"] == "epochs" and not row.params["persistent_workers"]]
    assert kept
    assert kept[0].median > 1.1 * anew[0].median


def test_the_other_options_in_the_thorough_budget(machine):
    context = Context(device="cpu", facts=machine, seconds=20.0, budget="thorough")
    rows = list(benches.load("dataloader").measure(context))
    others = {row.params["kind"] for row in rows} - set(dataloader_workers.KINDS)
    chosen = advise.choices(machine, rows)
    if dataloader_workers.fewest(dataloader_workers.curve(rows, "decoding")).params["workers"]:
        assert others == {"prefetch", "epochs"}
        assert chosen["dataloader_persistent_workers"].reason != "not measured in this run's budget"
    else:
        assert not others
    assert not children()
