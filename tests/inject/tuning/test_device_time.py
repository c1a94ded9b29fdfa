"""How long the GPU works for a step, from a trace's events."""

import gc
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gputune.inject.tuning.device_time import Trace, program_traces, seconds


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
