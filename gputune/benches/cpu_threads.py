"""How many threads one process should compute with on these CPUs: torch's own count, the CPU budget, and one."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from gputune.bench_process import Context
from gputune.benches._timing import Arm, Metric, interleave, or_gap
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.search.rounds import against_first

SECONDS = {"cuda": {"standard": 2, "thorough": 6}, "cpu": {"standard": 3, "thorough": 6}}
RANK = 5
OF_THE_HOST = True

SIZE = 1024


def measure(context: Context) -> Iterator[Measurement | Gap]:
    import torch

    started_with = torch.get_num_threads()
    budget = context.facts.cpu.budget
    counts = sorted({started_with, budget, 1}, key=lambda count: (count != started_with, -count))
    host_side = replace(context, device="cpu")
    arms = against_first([_arm(count, count == started_with) for count in counts])
    try:
        rows = interleave(host_side, arms, context.seconds, Metric("cpu_threads", "TFLOP/s"))
        on_device = [replace(row, device=context.device) for row in rows]
        yield from or_gap(on_device, "bench.cpu_threads", "a matmul")
    finally:
        torch.set_num_threads(started_with)


def _arm(threads: int, default: bool) -> Arm:
    import torch

    x, w = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    return Arm(
        params={"threads": threads, "default": default},
        run=lambda: torch.relu(torch.nn.functional.linear(x, w)),
        work=2 * SIZE**3 / 1e12,
        before=partial(torch.set_num_threads, threads),
    )
