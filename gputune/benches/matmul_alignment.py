"""The cost of a matmul dimension that is no multiple of 2, 4, 8 ... 128.

The three products of a linear layer, `x[M, K] @ w[N, K].T` forward and its two gradients, with one dimension a little
above a power of two and the others at it. All sizes of a dimension need the same number of tiles of 128, so that they
differ in alignment only; the power of two itself, which needs a tile less, is left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from gputune.advice.dimension_multiple import WORTH, Alignment
from gputune.bench_process import Context
from gputune.benches import kind_of
from gputune.benches._matmul import linear, matrix, set_flags
from gputune.benches._timing import Arm, Metric, interleave, or_gap, shared_out
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.search.rounds import against_first

SECONDS = {"cuda": {"quick": 2.5, "standard": 5, "thorough": 65}, "cpu": {"quick": 5, "standard": 7, "thorough": 40}}
RANK = 2

BASE = {"cuda": 4096, "cpu": 512}
PRODUCTS = ("forward", "grad_input", "grad_weight")
MULTIPLES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Added to the base to give a size; so it is also the largest power of two that divides the size."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Sizes of one dimension of one product in one dtype, compared with each other; the first is the baseline."""

    dtype: str
    product: str
    dim: str
    added: tuple[int, ...]


def measure(context: Context) -> Iterator[Measurement | Gap]:
    for group, seconds in shared_out(plan(context), context.seconds, lambda group: len(group.added)):
        title = f"{group.dtype} {group.dim}, {group.product.replace('_', ' of ')}"
        context.say(title)
        arms = against_first([_arm(context, group, added) for added in group.added])
        rows = interleave(context, arms, seconds, Metric("matmul_alignment", "TFLOP/s"))
        yield from or_gap(rows, "bench.matmul_alignment", title)


def plan(context: Context) -> list[Group]:
    """All groups of a budget, Tensor Core dtypes first; plain FP32 only tells whether size matters at all."""
    ordered = sorted(context.dtypes, key=("bfloat16", "float16", "tf32", "float32").index)
    if context.budget == "thorough":
        return [group for dtype in ordered for group in _everything(context, dtype)]
    wanted = ordered[:1]
    if context.budget == "standard":
        wanted = [dtype for dtype in ordered if not context.cuda or dtype in (context.main_dtype, "tf32")]
    return [Group(dtype=dtype, product="forward", dim=dim, added=(8, 1, 2, 4)) for dtype in wanted for dim in "NK"]


def _everything(context: Context, dtype: str) -> Iterator[Group]:
    if dtype == "float32" and context.cuda:
        for product in PRODUCTS:
            yield from (Group(dtype=dtype, product=product, dim=dim, added=(8, 1)) for dim in "NKM")
        return
    largest = MULTIPLES if context.cuda else MULTIPLES[:5]  # a CPU has no tiles of 128 that would hide a larger size
    for product in PRODUCTS:
        for dim in "NK":
            yield Group(dtype=dtype, product=product, dim=dim, added=largest[::-1])
        yield Group(dtype=dtype, product=product, dim="M", added=(largest[-1], 1, 8))


def _arm(context: Context, group: Group, added: int) -> Arm:
    base = BASE[kind_of(context.device)]
    sizes = {"M": base, "N": base, "K": base} | {group.dim: base + added}
    return Arm(
        params=Alignment(
            dtype=group.dtype, product=group.product, dim=group.dim, size=base + added, multiple=added
        ).params,
        run=_product(context, group, sizes),
        work=2 * sizes["M"] * sizes["N"] * sizes["K"] / 1e12,
        before=partial(set_flags, group.dtype),
        worth=WORTH,
    )


def _product(context: Context, group: Group, sizes: dict[str, int]) -> Callable[[], Any]:
    """A linear layer's output [M, N] from x [M, K] and w [N, K], or its gradient for x or w."""
    x, w, grad = (
        partial(matrix, context, group.dtype, sizes[one], sizes[other], seed)
        for seed, (one, other) in enumerate((("M", "K"), ("N", "K"), ("M", "N")))
    )
    if group.product == "forward":
        return linear(group.dtype, x(), w())
    left, right = (grad(), w()) if group.product == "grad_input" else (grad().T, x())
    return lambda: left @ right
