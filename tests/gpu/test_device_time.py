"""How long the GPU works, traced, beside what its own events say."""

import time

import pytest
import torch

from gputune.inject.tuning.device_time import Trace

COUNT, SIZE = 20, 4096
TRACES, LAUNCHES = 15, 3000


def matmuls(matrix, pause):
    for _ in range(COUNT):
        matrix @ matrix
        time.sleep(pause)


def traced(matrix, pause):
    trace = Trace("cuda")
    matmuls(matrix, pause)
    return trace.stop()


def timed(matrix):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    matmuls(matrix, 0)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


@pytest.mark.gpu
def test_it_is_what_events_say_and_the_same_beside_a_host_that_limits():
    matrix = torch.randn(SIZE, SIZE, device="cuda")
    traced(matrix, 0)
    seconds = timed(matrix)
    assert traced(matrix, 0) == pytest.approx(seconds, rel=0.1)
    assert traced(matrix, 0.01) == pytest.approx(seconds, rel=0.1)


def launches():
    """The seconds of a loop in which the host is the limit."""
    small = torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(LAUNCHES):
        small.add_(1)
    torch.cuda.synchronize()
    return time.perf_counter() - begun


@pytest.mark.gpu
def test_as_many_traces_as_a_tune_has_agree():
    matrix = torch.randn(SIZE // 4, SIZE // 4, device="cuda")
    found = []
    for _ in range(TRACES):
        found.append(traced(matrix, 0))
        time.sleep(0.5)
    print([one and round(1000 * one, 3) for one in found])
    assert None not in found
    assert max(found) <= 1.05 * min(found)


@pytest.mark.gpu
def test_the_host_is_as_fast_after_a_trace_as_before():
    launches()
    before = min(launches() for _ in range(10))
    traced(torch.randn(SIZE, SIZE, device="cuda"), 0)
    after = min(launches() for _ in range(10))
    print(f"{1e6 * before / LAUNCHES:.2f} us a launch before, {1e6 * after / LAUNCHES:.2f} after")
    assert after <= 1.05 * before


@pytest.mark.gpu
def test_nothing_is_traced_where_nothing_works():
    assert Trace("cuda").stop() is None


@pytest.mark.gpu
def test_the_programs_own_profiler_is_left_alone():
    matrix = torch.randn(SIZE, SIZE, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as own:
        assert traced(matrix, 0) is None
    assert any("gemm" in one.name.lower() or "nvjet" in one.name.lower() for one in own.events())
