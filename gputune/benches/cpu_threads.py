"""How many threads one process should compute with on these CPUs: torch's own count, the CPU budget, and one.

Half of the CPUs is left out: on a machine of 16, 8 ran 1.25 times as fast as all in one process and half as fast in
the next.
"""

from collections.abc import Iterator
from functools import partial

from gputune.bench_process import Context
from gputune.benches import torch_missing
from gputune.benches._timing import Arm, against_first, interleave, measurement
from gputune.facts import Facts
from gputune.measurement import Measurement

SECONDS = {
    "cuda": {"quick": 0, "standard": 2, "thorough": 6},
    "cpu": {"quick": 0, "standard": 3, "thorough": 6},
}
RANK = 8
OF_THE_HOST = True

SIZE = 1024


def needs(facts: Facts, device: str) -> str | None:
    return torch_missing(facts)


def measure(context: Context) -> Iterator[Measurement]:
    import torch

    started_with = torch.get_num_threads()
    budget = context.facts.cpu.budget
    counts = sorted({started_with, budget, 1}, key=lambda count: (count != started_with, -count))
    host_side = Context(device="cpu", facts=context.facts, seconds=context.seconds, budget=context.budget)
    arms = against_first([_arm(count, count == started_with) for count in counts])
    try:
        yield from interleave(host_side, arms, context.seconds, partial(measurement, context, "cpu_threads", "TFLOP/s"))
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
