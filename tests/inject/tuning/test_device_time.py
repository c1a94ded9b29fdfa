"""How long the GPU works for a step, from a trace's events."""

import gc
import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gputune.inject.tuning.device_time import CALLS, TEARDOWN, Trace, program_traces, seconds


def event(name: str, us: float, kind: str = "CUDA", **more: Any) -> Any:
    taken = SimpleNamespace(elapsed_us=lambda: us)
    return SimpleNamespace(name=name, device_type=SimpleNamespace(name=kind), time_range=taken, **more)


OWN = event("at::cuda::(anonymous namespace)::spin_kernel(long)", 3.0)


def test_kernels_and_copies_on_the_gpu_are_added_up() -> None:
    assert seconds([OWN, event("gemm", 1000.0), event("Memcpy DtoD (Device -> Device)", 500.0)]) == 0.0015


def test_what_the_host_does_is_none_of_it() -> None:
    assert seconds([OWN, event("gemm", 1000.0), event("cudaLaunchKernel", 70.0, "CPU")]) == 0.001


@pytest.mark.parametrize("name", ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "Memcpy HtoD (Pageable -> Device)"])
def test_nor_is_waiting_for_other_gpus_and_for_the_host(name: str) -> None:
    assert seconds([OWN, event("gemm", 1000.0), event(name, 9000.0)]) == 0.001


def test_nor_are_ranges_that_the_program_named() -> None:
    named = [event("gemm", 1000.0, is_user_annotation=False), event("forward", 1100.0, is_user_annotation=True)]
    assert seconds([OWN, *named]) == 0.001


def test_where_the_first_records_are_lost_nothing_is_known() -> None:
    assert seconds([event("gemm", 1000.0)]) is None


def test_nor_where_there_are_none() -> None:
    assert seconds([]) is seconds([OWN]) is None


def test_without_a_gpu_nothing_is_traced() -> None:
    assert Trace("cpu").stop() is None


class TestCupti:
    """It is detached behind the last trace, by what kineto reads from the environment until it has done so."""

    @pytest.fixture
    def seen(self, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
        """What the environment said at each call of CUDA's, the first of which comes before the trace ends."""
        monkeypatch.delenv(TEARDOWN, raising=False)
        seen: list[str | None] = []
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: seen.append(os.environ.get(TEARDOWN)))
        return seen

    @pytest.fixture
    def trace(self) -> Trace:
        """With a profiler that has seen nothing."""
        trace = Trace("cpu")
        trace._profile = SimpleNamespace(__exit__=lambda *_: None, function_events=[])
        return trace

    def test_it_is_detached_while_calls_are_made(self, trace: Trace, seen: list[str | None]) -> None:
        trace.stop()
        assert seen == [None, *["1"] * CALLS]
        assert TEARDOWN not in os.environ

    def test_it_stays_attached_between_two_traces(self, trace: Trace, seen: list[str | None]) -> None:
        trace.stop(last=False)
        assert seen == [None]

    def test_and_where_the_program_wants_that(
        self, trace: Trace, seen: list[str | None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(TEARDOWN, "0")
        trace.stop()
        assert set(seen) == {"0"}
        assert os.environ[TEARDOWN] == "0"

    def test_the_environment_is_as_before_whatever_fails(self, trace: Trace, seen: list[str | None]) -> None:
        trace._profile.function_events = None
        assert trace.stop() is None
        assert TEARDOWN not in os.environ


class TestAProfilerOfTheProgram:
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
