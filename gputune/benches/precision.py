"""How fast, and how exactly, this device multiplies matrices in each dtype.

One square matmul in FP32, TF32, bfloat16 and float16, in turn, and the relative error of each against float64. The error
is what tells the truth: NVIDIA_TF32_OVERRIDE beats torch's flags in both directions and the flags do not show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from gputune.benches import Context, torch_missing
from gputune.benches._matmul import flags_for, operands
from gputune.benches._timing import Arm, against_first, interleave, measurement, time_of, warm_up
from gputune.facts import Facts
from gputune.measurement import Measurement, rounded

SECONDS = {
    "cuda": {"quick": 3, "standard": 5, "thorough": 10},
    "cpu": {"quick": 3, "standard": 4, "thorough": 10},
}
RANK = 1

GPU_SIZE = 4096
CPU_SIZES = (256, 512, 1024)
CPU_CALL_SECONDS = 0.02


def needs(facts: Facts, device: str) -> str | None:
    return torch_missing(facts)


def measure(context: Context) -> Iterator[Measurement]:
    size = GPU_SIZE if context.cuda else _cpu_size(context)
    arms = against_first([_arm(context, dtype, size) for dtype in context.dtypes])
    if "tf32" in context.dtypes:  # what mixed precision must gain over
        for arm in arms[2:]:
            arm.baseline = arms[1]
    if context.cuda:
        warm_up(context, arms[-1].run, min(1.0, context.seconds / 5))
    for dtype in context.dtypes:
        yield _error(context, dtype)
    yield from interleave(context, arms, context.seconds * 0.7, partial(measurement, context, "precision", "TFLOP/s"))


def _arm(context: Context, dtype: str, size: int) -> Arm:
    import torch

    x, w = operands(context, dtype, size, size, size)
    return Arm(
        params={"dtype": dtype, "size": size},
        run=lambda: torch.nn.functional.linear(x, w),
        work=2 * size**3 / 1e12,
        before=flags_for(dtype),
    )


def _cpu_size(context: Context) -> int:
    """The largest size of which one FP32 matmul still fits a block."""
    import torch

    chosen = CPU_SIZES[0]
    for size in CPU_SIZES:
        x, w = operands(context, "float32", size, size, size)
        run: Any = partial(torch.nn.functional.linear, x, w)
        time_of(context, run, 1)
        if time_of(context, run, 2) / 2 > CPU_CALL_SECONDS:
            break
        chosen = size
    return chosen


def _error(context: Context, dtype: str) -> Measurement:
    """Relative error (Frobenius norm) of x @ w.T against float64, on normally distributed numbers."""
    import torch

    x, w = operands(context, "float32", 512, 512, 4096 if context.cuda else 1024)
    exact = torch.nn.functional.linear(x.double(), w.double())
    flags_for(dtype)()
    kind = getattr(torch, "float32" if dtype == "tf32" else dtype)
    got = torch.nn.functional.linear(x.to(kind), w.to(kind)).double()
    error = float((got - exact).norm() / exact.norm())
    return Measurement(
        bench="precision",
        metric="relative_error",
        unit="1",
        samples=(rounded(error),),
        params={"dtype": dtype},
        device=context.device,
    )
