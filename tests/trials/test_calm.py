"""Whether a machine was calm, by what others used of its CPUs."""

from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.facts import busy
from gputune.host import Host
from gputune.trials.calm import WINDOW_SECONDS, CalmWatch

CPU = replace(facts_of().cpu, affinity_count=2, budget=2)


class Machine:
    """Its readings, in steps of so many seconds in which others use so many CPUs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = busy.Reading(at=0.0, busy=0.0, own=0.0)
        monkeypatch.setattr(busy, "read", lambda host: self.now)
        self.watch = CalmWatch(Host(), CPU, on_gpu=False)
        self.watch.was_calm()

    def passes(self, seconds: float, others: float, own: float = 1.0) -> bool:
        at, used = self.now.at + seconds, self.now.busy + (others + own) * seconds
        self.now = replace(self.now, at=at, busy=used, own=self.now.own + own * seconds)
        return self.watch.was_calm()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_calm_is_what_others_leave_enough_of(machine: Machine) -> None:
    assert machine.passes(1.0, others=0.1)
    assert not machine.passes(1.0, others=1.2)
    assert machine.passes(1.0, others=0.1)
    assert str(machine.watch) == "others used up to 1.2 of 2 CPUs"


def test_a_short_round_is_told_by_the_window_before_it(machine: Machine) -> None:
    machine.passes(1.0, others=0.0)
    assert not machine.passes(WINDOW_SECONDS, others=1.5)
    assert not machine.passes(0.05, others=0.0)
    assert machine.passes(WINDOW_SECONDS, others=0.0)


def test_where_nothing_can_be_read_it_is_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "read", lambda host: None)
    watch = CalmWatch(Host(), CPU, on_gpu=False)
    assert watch.was_calm()
    watch.wait(60.0)
