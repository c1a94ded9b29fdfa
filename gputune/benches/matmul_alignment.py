"""What a dimension of a matmul costs when it is no multiple of 2, 4, 8 or 16.

`linear(x[M, K], w[N, K])` with one dimension a little above a power of two and the others at it. All sizes of a
dimension fill the same number of tiles, so that what is compared is alignment and not the size of the last tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gputune.benches import Context, torch_missing
from gputune.benches._matmul import flags_for, operands
from gputune.benches._timing import Arm, against_first, interleave, measurement
from gputune.facts import Facts
from gputune.measurement import Measurement

SECONDS = {
    "cuda": {"quick": 6, "standard": 20, "thorough": 60},
    "cpu": {"quick": 5, "standard": 9, "thorough": 40},
}
RANK = 2

BASE = {"cuda": 4096, "cpu": 512}
MULTIPLES = (16, 1, 2, 4, 8)
"""The size is the base plus this, so this is the largest power of two (up to 16) that divides it. 16 is the baseline."""


def needs(facts: Facts, device: str) -> str | None:
    return torch_missing(facts)


def measure(context: Context) -> Iterator[Measurement]:
    groups = [(dtype, dim, multiples) for dtype in _dtypes(context) for dim, multiples in _dimensions(context, dtype)]
    arms = sum(len(multiples) for _, _, multiples in groups)
    for dtype, dim, multiples in groups:
        context.say(f"{dtype} {dim}")
        group = against_first([_arm(context, dtype, dim, multiple) for multiple in multiples])
        seconds = context.seconds * len(group) / arms
        yield from interleave(context, group, seconds, partial(measurement, context, "matmul_alignment", "TFLOP/s"))


def _dtypes(context: Context) -> tuple[str, ...]:
    """The Tensor Core dtypes first; quick looks only at the one that a network would be trained in."""
    ordered = tuple(sorted(context.dtypes, key=("bfloat16", "float16", "tf32", "float32").index))
    return ordered[:1] if context.budget == "quick" else ordered


def _dimensions(context: Context, dtype: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """M, and on a GPU plain FP32, which runs without Tensor Cores, are looked at only for whether they matter at all."""
    matters = MULTIPLES[:2] if dtype == "float32" and context.cuda else MULTIPLES
    yield "N", matters
    yield "K", matters
    if context.budget != "quick":
        yield "M", MULTIPLES[:2]


def _arm(context: Context, dtype: str, dim: str, multiple: int) -> Arm:
    import torch

    base = BASE["cuda" if context.cuda else "cpu"]
    sizes = {"M": base, "N": base, "K": base} | {dim: base + multiple}
    x, w = operands(context, dtype, sizes["M"], sizes["N"], sizes["K"])
    return Arm(
        params={"dtype": dtype, "dim": dim, "size": base + multiple, "multiple": multiple},
        run=lambda: torch.nn.functional.linear(x, w),
        work=2 * sizes["M"] * sizes["N"] * sizes["K"] / 1e12,
        before=flags_for(dtype),
    )
