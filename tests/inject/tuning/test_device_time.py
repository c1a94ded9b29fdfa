"""How long the GPU works for a step, from a trace's events."""

from types import SimpleNamespace
from typing import Any

import torch

from gputune.inject.tuning.device_time import Trace, seconds


def event(name: str, us: float, kind: str = "CUDA", **more: Any) -> Any:
    taken = SimpleNamespace(elapsed_us=lambda: us)
    return SimpleNamespace(name=name, device_type=SimpleNamespace(name=kind), time_range=taken, **more)


def test_kernels_and_copies_are_added_up() -> None:
    assert seconds([event("gemm", 1000.0), event("Memcpy DtoH", 500.0)]) == 0.0015


def test_what_the_host_does_is_none_of_it() -> None:
    assert seconds([event("gemm", 1000.0), event("cudaLaunchKernel", 70.0, "CPU")]) == 0.001


def test_nor_is_waiting_for_other_gpus() -> None:
    assert seconds([event("gemm", 1000.0), event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9000.0)]) == 0.001


def test_nor_are_ranges_that_the_program_named() -> None:
    named = [event("gemm", 1000.0, is_user_annotation=False), event("forward", 1100.0, is_user_annotation=True)]
    assert seconds(named) == 0.001


def test_without_a_gpu_nothing_is_traced() -> None:
    assert Trace("cpu").stop() is None


def test_nor_while_the_program_has_a_profiler() -> None:
    """One that may start only at a later step."""
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    trace = Trace("cuda")
    assert trace.stop() is None
    del profiler
