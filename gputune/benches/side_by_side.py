"""How fast each GPU of a node is while all of them work, so that they can be compared with each other.

Matmuls of the dtype that a network would be trained in, after three seconds of them, and then copies inside the GPU's
own memory. All GPUs do the same at once, as in a training: they share power and air. `gputune probe --device all`
runs it; a single GPU has nothing to be compared with, and `matmul_peak` measures its peaks.
"""

from collections.abc import Iterator
from functools import partial

from gputune.bench_process import Context
from gputune.benches._matmul import linear, operands, set_flags
from gputune.benches._timing import Arm, Metric, in_blocks, warm_up
from gputune.facts import Facts
from gputune.measurement import Measurement

SECONDS = {"cuda": {"quick": 6, "standard": 6, "thorough": 6}}
RANK = 0.5
SIDE_BY_SIDE = True

SIDE = 8192
COPIED_BYTES = 512 << 20
"""Equal on all GPUs, whatever memory is free, and much more than any L2 holds."""
LOAD_SECONDS = 3.0
"""By then a power limit has lowered the clock."""
BLOCK_SECONDS = 0.1
COPY_LOAD_SECONDS = 0.3
COPY_BLOCK_SECONDS = 0.05


def needs(facts: Facts, device: str) -> str | None:
    return None if device.startswith("cuda") else "it compares GPUs with each other"


def measure(context: Context) -> Iterator[Measurement]:
    import torch

    dtype = context.main_dtype
    context.say("matmul")
    set_flags(dtype)
    matmul = Arm(
        params={"dtype": dtype, "side": SIDE},
        run=linear(dtype, *operands(context, dtype, SIDE, SIDE, SIDE)),
        work=2 * SIDE**3 / 1e12,
    )
    warm_up(context, matmul.run, LOAD_SECONDS)
    yield in_blocks(context, matmul, Metric("side_by_side", "TFLOP/s", "matmul"), BLOCK_SECONDS)
    context.say("bandwidth")
    source = torch.randint(256, (COPIED_BYTES,), dtype=torch.uint8, device=context.device)
    read_and_written = 2 * COPIED_BYTES / 1e9
    copy = Arm(params={"copy": "device"}, run=partial(torch.empty_like(source).copy_, source), work=read_and_written)
    warm_up(context, copy.run, COPY_LOAD_SECONDS)
    yield in_blocks(context, copy, Metric("side_by_side", "GB/s", "bandwidth"), COPY_BLOCK_SECONDS)
