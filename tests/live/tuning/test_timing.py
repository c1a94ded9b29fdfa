"""The clock of a block, on a made-up GPU that a made-up host is ahead of, and how long the GPU works, from a trace."""

import gc
import os
from types import SimpleNamespace
from typing import Any, Self

import pytest
import torch

from gputune.live.tuning.timing import CALLS, TEARDOWN, Clock, Trace, program_traces, seconds

LAUNCHES, BETWEEN = 0.003, 0.021
"""The seconds that the host takes to launch a step's kernels, and then for all else."""


class Machine:
    """torch.cuda and the host's clock: kernels of a step take `works` seconds, after those of the step before."""

    def __init__(self, works: float) -> None:
        self.works = works
        self.now = self.idle_from = 0.0

    def perf_counter(self) -> float:
        return self.now

    def synchronize(self, device: object = None) -> None:
        self.now = max(self.now, self.idle_from)

    def steps(self, count: int) -> None:
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
    monkeypatch.setattr("gputune.live.tuning.timing.time", SimpleNamespace(perf_counter=made.perf_counter))
    return made


def step_seconds(machine: Machine, count: int) -> float:
    machine.steps(1)
    clock = Clock("cuda")
    machine.steps(count)
    found: float = clock.stop().seconds
    return found / count


@pytest.mark.parametrize("works", [0.002, 0.018, 0.05])
def test_a_step_takes_as_long_in_short_blocks_as_in_long_ones(machine: Machine, works: float) -> None:
    machine.works = works
    for count in (2, 48, 3):
        assert step_seconds(machine, count) == pytest.approx(max(works, BETWEEN + LAUNCHES))


def test_the_gpu_is_idle_then(machine: Machine) -> None:
    clock = Clock("cuda")
    machine.steps(2)
    assert clock.stop().peak_bytes == 1000
    assert machine.now >= machine.idle_from


def test_where_streams_take_turns_and_the_end_was_before_the_beginning_it_is_the_hosts(machine: Machine) -> None:
    machine.steps(1)
    clock = Clock("cuda")
    machine.steps(1)
    machine.idle_from = 0.0
    clock._event.at = machine.now + 1
    assert clock.stop().seconds == pytest.approx(BETWEEN + LAUNCHES)


def test_without_a_gpu_it_is_the_hosts() -> None:
    found = Clock("cpu").stop()
    assert found.seconds > 0
    assert found.peak_bytes is None


def event(name: str, us: float, kind: str = "CUDA", **more: Any) -> Any:
    taken = SimpleNamespace(elapsed_us=lambda: us)
    return SimpleNamespace(name=name, device_type=SimpleNamespace(name=kind), time_range=taken, **more)


OWN = event("at::cuda::(anonymous namespace)::spin_kernel(long)", 3.0)


GEMM = event("gemm", 1000.0)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([OWN, GEMM, event("Memcpy DtoD (Device -> Device)", 500.0)], 0.0015),
        ([OWN, GEMM, event("cudaLaunchKernel", 70.0, "CPU")], 0.001),
        ([OWN, GEMM, event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9000.0)], 0.001),
        ([OWN, GEMM, event("Memcpy HtoD (Pageable -> Device)", 9000.0)], 0.001),
        ([OWN, event("gemm", 1000.0, is_user_annotation=False), event("f", 1100.0, is_user_annotation=True)], 0.001),
        ([GEMM], None),
        ([], None),
        ([OWN], None),
    ],
    ids=["kernels and copies", "the host", "waiting for GPUs", "waiting for the host", "named ranges",
         "the first are lost", "nothing", "no work"],
)  # fmt: skip
def test_kernels_and_copies_on_the_gpu_are_added_up(events: list[Any], expected: float | None) -> None:
    assert seconds(events) == expected


def test_without_a_gpu_nothing_is_traced() -> None:
    assert Trace("cpu").stop() is None


class TestCupti:
    """CUPTI is detached behind each trace, by what kineto reads from the environment when a trace ends and later on."""

    @pytest.fixture
    def seen(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
        seen: list[tuple[str, str | None]] = []

        class Profile:
            function_events = (OWN, event("gemm", 1000.0))

            def __init__(self, **_: Any) -> None: ...

            def __enter__(self) -> None: ...

            def __exit__(self, *_: object) -> None:
                seen.append(("trace ends", os.environ.get(TEARDOWN)))

        monkeypatch.setenv(TEARDOWN, "")  # so that it is put back afterwards
        monkeypatch.delenv(TEARDOWN)
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: seen.append(("call", os.environ.get(TEARDOWN))))
        monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)
        monkeypatch.setattr(torch.autograd.profiler, "profile", Profile)
        return seen

    def test_calls_are_made_until_it_is(self, seen: list[tuple[str, str | None]]) -> None:
        trace = Trace("cuda")
        seen.clear()
        assert trace.stop() == 0.001
        assert seen == [("call", "1"), ("trace ends", "1"), *[("call", "1")] * CALLS]

    def test_also_where_the_trace_failed(self, seen: list[tuple[str, str | None]]) -> None:
        trace = Trace("cuda")
        trace._profile.function_events = None
        seen.clear()
        assert trace.stop() is None
        assert len(seen) == 2 + CALLS

    def test_not_where_the_program_wants_it_to_stay(
        self, seen: list[tuple[str, str | None]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(TEARDOWN, "0")
        Trace("cuda").stop()
        assert {said for _, said in seen} == {"0"}


class TestAProfilerOfTheProgram:
    @pytest.mark.slow
    def test_none(self) -> None:
        gc.collect()
        assert not program_traces()

    def test_one_that_may_start_at_a_later_step(self) -> None:
        own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        assert program_traces()
        del own

    def test_one_that_is_on(self) -> None:
        with torch.autograd.profiler.profile():
            assert program_traces()
