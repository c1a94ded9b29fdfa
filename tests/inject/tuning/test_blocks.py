"""The clock of a block, on a made-up GPU that a made-up host is ahead of."""

from types import SimpleNamespace
from typing import Self

import pytest
import torch

from gputune.inject.tuning.timing import Clock

LAUNCHES, BETWEEN = 0.003, 0.021
"""The seconds that the host takes to launch a step's kernels, and then for all else."""


class Machine:
    """What stands for torch.cuda and for the host's clock: a step's kernels begin when the first is launched, or when
    those before have ended, and take `works` seconds.
    """

    def __init__(self, works: float) -> None:
        self.works = works
        self.now = self.idle_from = 0.0

    def perf_counter(self) -> float:
        return self.now

    def synchronize(self, device: object = None) -> None:
        self.now = max(self.now, self.idle_from)

    def steps(self, count: int) -> None:
        """Up to where the optimizer's step has been launched, as a program's steps are told apart."""
        for _ in range(count):
            self.now += BETWEEN
            self.idle_from = max(self.now, self.idle_from) + self.works
            self.now += LAUNCHES

    def Event(self, **_: object) -> "Event":
        return Event(self)

    def current_stream(self, device: object) -> None: ...
    def reset_peak_memory_stats(self) -> None: ...
    def max_memory_allocated(self, device: object) -> int:
        return 1000


class Event:
    device = None

    def __init__(self, machine: Machine) -> None:
        self.machine, self.at = machine, 0.0

    def record(self, stream: None = None) -> None:
        self.at = max(self.machine.now, self.machine.idle_from)

    def elapsed_time(self, end: Self) -> float:
        assert end.at <= self.machine.now, "the GPU has not come to it yet"
        return 1000 * (end.at - self.at)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(works=0.018)
    monkeypatch.setattr(torch, "cuda", made)
    monkeypatch.setattr("gputune.inject.tuning.timing.time", SimpleNamespace(perf_counter=made.perf_counter))
    return made


def step_seconds(machine: Machine, count: int) -> float:
    """What a step takes, in a block that follows another step."""
    machine.steps(1)
    clock = Clock("cuda")
    machine.steps(count)
    found: float = clock.stop()["seconds"]
    return found / count


@pytest.mark.parametrize("works", [0.002, 0.018, 0.05])
def test_a_step_takes_as_long_in_short_blocks_as_in_long_ones(machine: Machine, works: float) -> None:
    machine.works = works
    for count in (2, 48, 3):
        assert step_seconds(machine, count) == pytest.approx(max(works, BETWEEN + LAUNCHES))


def test_the_gpu_is_idle_then(machine: Machine) -> None:
    clock = Clock("cuda")
    machine.steps(2)
    assert clock.stop()["peak_bytes"] == 1000
    assert machine.now >= machine.idle_from


def test_where_streams_take_turns_and_the_end_was_before_the_beginning_it_is_the_hosts(machine: Machine) -> None:
    machine.steps(1)
    clock = Clock("cuda")
    machine.steps(1)
    machine.idle_from = 0.0
    clock._event.at = machine.now + 1
    assert clock.stop()["seconds"] == pytest.approx(BETWEEN + LAUNCHES)


def test_without_a_gpu_it_is_the_hosts() -> None:
    found = Clock("cpu").stop()
    assert found["seconds"] > 0
    assert found["peak_bytes"] is None
