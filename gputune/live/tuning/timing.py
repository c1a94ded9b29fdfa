"""How long steps take by the GPU's own clock, how long the GPU works for them, and a run that is only timed.

The host may be ahead of a GPU. A clock that waited for the GPU before and after a block would add to it what the host
was ahead, and so tell against whatever the host limits, the more the shorter the block.
"""

import atexit
import gc
import os
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from ..orders import BlockTimed, Done, Passed, TimeBlock
from .run import Run


class Clock:
    """Started when it is made, right behind a step that was made without a pause before it."""

    def __init__(self, device: str) -> None:
        self._event: Any = None
        if device == "cuda":
            import torch

            torch.cuda.reset_peak_memory_stats()
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record()
        self._begun = time.perf_counter()

    def stop(self) -> BlockTimed:
        """What passed since then; a GPU is idle on return."""
        if self._event is None:
            return BlockTimed(seconds=time.perf_counter() - self._begun, peak_bytes=None)
        import torch

        device = self._event.device  # which need not be the current one any more
        end = torch.cuda.Event(enable_timing=True)
        end.record(torch.cuda.current_stream(device))
        torch.cuda.synchronize(device)
        seconds = self._event.elapsed_time(end) / 1000
        if seconds <= 0:  # two streams took turns, and the one with the end was ahead
            seconds = time.perf_counter() - self._begun
        return BlockTimed(seconds=seconds, peak_bytes=torch.cuda.max_memory_allocated(device))


NO_WORK = ("nccl", "Memcpy HtoD", "Memcpy DtoH")
"""How the names begin of what waits for other GPUs or for the host rather than works."""
FIRST, FIRSTS = "spin_kernel", 50
"""A trace begins with so many of this kernel, since CUPTI may lose its first records, source:
https://github.com/pytorch/pytorch/issues/192021."""
TEARDOWN, CALLS, BETWEEN_CALLS = "TEARDOWN_CUPTI", 10, 0.005
"""Where this is "1" in the environment, kineto detaches CUPTI from the process behind a trace: a thread of its own
prepares that, and the next call of CUDA's does it. A trace that began before would lose its records, so there are so
many calls, with so many seconds between them."""
_own: weakref.WeakSet[Any] = weakref.WeakSet()
"""The profilers that were made here, which may live on for a while."""


class Trace:
    """A trace of the kernels and copies that this process starts on the GPU, from when it is made until `stop`. What
    fails in it is no fault of the program's, which goes on untraced.

    CUPTI left attached, as it is by default, makes the host of all later steps a fifth slower, source:
    https://github.com/pytorch/pytorch/issues/144455. A program, or torch, that has set `TEARDOWN` is heeded.
    """

    def __init__(self, device: str) -> None:
        self._profile: Any = None
        if device != "cuda":
            return
        import torch

        with suppress(Exception):
            if program_traces():
                return
            os.environ.setdefault(TEARDOWN, "1")
            torch.cuda.synchronize()
            profile: Any = torch.autograd.profiler.profile(use_cpu=False, use_device="cuda", use_kineto=True)
            _own.add(profile)
            profile.__enter__()
            self._profile = profile
            atexit.register(profile.__exit__, None, None, None)  # a profiler that is on at exit ends it by a signal
            for _ in range(FIRSTS):
                torch.cuda._sleep(1)  # type: ignore[no-untyped-call,unused-ignore]  # nothing public does nothing

    def stop(self) -> float | None:
        """The seconds that kernels and copies took since then, together; None where nothing could be traced."""
        profile, self._profile = self._profile, None
        if profile is None:
            return None
        atexit.unregister(profile.__exit__)
        import torch

        with suppress(Exception):
            torch.cuda.synchronize()
        with suppress(Exception):
            try:
                profile.__exit__(None, None, None)
                return seconds(profile.function_events)
            finally:
                for _ in range(CALLS):
                    time.sleep(BETWEEN_CALLS)
                    torch.cuda.synchronize()
        return None


def seconds(events: Iterable[Any]) -> float | None:
    """How long the GPU worked, by torch's `FunctionEvent`s; None where the first of its events were lost, or all."""
    own = [one for one in events if one.device_type.name == "CUDA" and not getattr(one, "is_user_annotation", False)]
    works = [one for one in own if FIRST not in one.name and not one.name.startswith(NO_WORK)]
    if len(works) == len(own):
        return None
    return sum(float(one.time_range.elapsed_us()) for one in works) / 1e6 or None


def program_traces() -> bool:
    """Whether the program has a profiler, which may start at any of its steps: a second one cancels it or raises."""
    import torch

    enabled: Any = torch.autograd._profiler_enabled
    kinds = (torch.profiler.profile, torch.autograd.profiler.profile)
    return bool(enabled()) or any(issubclass(type(one), kinds) and one not in _own for one in gc.get_objects())


def work(run: Run) -> Iterator[int]:
    """Time the first steps together, since some of them compile, then blocks as they are ordered."""
    yield 1
    clock = Clock(run.device)
    run.send(Done())
    for _ in range(_steps(run)):
        yield 1
        run.send(Passed())
    run.send(clock.stop())
    while True:
        steps = _steps(run)
        yield 1  # since there was a pause
        clock = Clock(run.device)
        yield steps
        run.send(clock.stop())


def _steps(run: Run) -> int:
    order = run.receive()
    assert isinstance(order, TimeBlock)
    return order.steps
