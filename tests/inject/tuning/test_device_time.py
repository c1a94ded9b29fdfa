"""How long the GPU works for a step, from a trace's events."""

import gc
import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gputune.inject.tuning.timing import CALLS, TEARDOWN, Trace, program_traces, seconds


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
        """The calls that a made-up GPU gets, each with what the environment says at that moment."""
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
