"""The user's own training step in batches of different sizes: which fit into memory, and which are fastest.

`gputune batch-size path.py:make_training`, where `make_training()` takes nothing and returns a callable
`step(batch_size)` that runs one whole training step (forward, backward, optimizer) on a batch of that size. Each size
that is tried runs two steps at least: the optimizer's state comes with the first.

A GPU's memory is counted as torch reserves it, together with whatever else is on the card. On the CPU it is the memory
of the process at its peak, and what is left is what the tightest limit of its cgroup, or the host, leaves.
"""

import ctypes
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from gputune.bench_process import Context
from gputune.benches._errors import out_of_memory, synchronize
from gputune.benches._timing import Arm, Metric, interleave
from gputune.benches._user_code import UserCodeError, call, words
from gputune.facts import memory
from gputune.facts.gap import Gap, Gaps
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.search.rounds import ranked

SECONDS = {"cuda": {"quick": 10, "standard": 15, "thorough": 30}, "cpu": {"quick": 10, "standard": 15, "thorough": 30}}
RANK = 12
OPTION = "batches"

NO_MEMORY = "bench.batch_size.memory"
FAILED = "bench.batch_size.failed"
UNUSABLE = "bench.batch_size.make"
"""The facts of this bench's gaps: the memory did not suffice, the step raised an exception, there is no step to run."""
ENOUGH_SECONDS = 0.1
"""How long a trial runs steps, for its rough rate."""
_Step = Callable[[int], Any]
_steps: dict[str, _Step] = {}
"""The user's steps, by name: making one may take long, and the bench process serves many requests."""


def measure(context: Context) -> Iterator[Measurement | Gap]:
    """Yield a row for each size that ran, in order, and a Gap for the first that did not, which is the end."""
    batches = context.batches
    if batches is None:
        return
    began = time.monotonic()
    try:
        step = _step(batches.make)
    except UserCodeError as error:
        yield Gap(fact=UNUSABLE, reason=str(error))
        return
    try:
        if batches.timed:
            arms = ranked([Arm(params={"batch": size}, run=partial(step, size), work=size) for size in batches.sizes])
            yield from interleave(context, arms, context.seconds, Metric("batch_size", "samples/s"))
        else:
            for size in batches.sizes:
                yield _trial(context, step, size, began)
                began = time.monotonic()
    except (Exception, SystemExit) as error:
        lacks_memory = isinstance(error, MemoryError) or (isinstance(error, Exception) and out_of_memory(error))
        fact, why = (NO_MEMORY, "out of memory") if lacks_memory else (FAILED, words(error))
    else:
        return
    # The frames that held the step's tensors are gone only here, after the except block.
    _free(context)
    yield Gap(fact=fact, reason=why)
    synchronize(context)


def _step(make: str) -> _Step:
    """Raises UserCodeError."""
    if make not in _steps:
        step = call(make)
        if not callable(step):
            name = make.rpartition(":")[2]
            raise UserCodeError(f"{name}() returned {type(step).__name__} and no callable step(batch_size)")
        _steps[make] = step
    return _steps[make]


def _trial(context: Context, step: _Step, size: int, began: float) -> Measurement:
    _free(context)
    memory_used = partial(_gpu_memory, context.device) if context.cuda else _HostMemory().read
    step(size)
    synchronize(context)
    steps, start = 0, time.perf_counter()
    while steps == 0 or time.perf_counter() - start < ENOUGH_SECONDS:
        step(size)
        synchronize(context)
        steps += 1
    rate = steps * size / (time.perf_counter() - start)
    conditions = {**memory_used(), "seconds": time.monotonic() - began}
    return Metric("batch_size", "samples/s", "trial").row(context, [rate], {"batch": size}, **conditions)


def _free(context: Context) -> None:
    import torch

    gc.collect()
    if context.cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(context.device)
        return
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _gpu_memory(device: str) -> dict[str, float]:
    """The most that torch reserved of a GPU, and what that left of the card or of torch's limit."""
    import torch

    free, total = torch.cuda.mem_get_info(device)
    reserved, peak = torch.cuda.memory_reserved(device), torch.cuda.max_memory_reserved(device)
    limit = getattr(torch.cuda, "get_per_process_memory_fraction", lambda device: 1.0)(device) * total
    left = min(free + reserved, limit) - peak
    return {"peak_bytes": peak, "left_bytes": max(0, int(left)), "total_bytes": min(total, int(limit))}


class _HostMemory:
    """The peak of this process's memory since this object was made, and what its growth left of what was free then."""

    def __init__(self) -> None:
        with suppress(OSError):  # where the kernel cannot reset the peak, it is that of the process's whole life
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._before = _status_bytes("VmRSS")
        self._free, self._total = free_and_total_bytes(Host())

    def read(self) -> dict[str, float]:
        peak = _status_bytes("VmHWM")
        if peak is None or self._before is None or self._free is None or self._total is None:
            return {}
        left = max(0, self._free - max(0, peak - self._before))
        return {"peak_bytes": peak, "left_bytes": left, "total_bytes": self._total}


def free_and_total_bytes(host: Host) -> tuple[int | None, int | None]:
    """Return the free and the total memory within the cgroup's tightest limit; None for what cannot be read."""
    reading = memory.read(host, Gaps())
    free = [count for count in (reading.limit_free_bytes, reading.free_bytes) if count is not None]
    total = [count for count in (reading.limit_bytes, reading.total_bytes) if count is not None]
    return min(free, default=None), min(total, default=None)


def _status_bytes(name: str) -> int | None:
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])
    return None
