"""The multiple that a matmul's N and K (features, vocabulary, heads) should be padded to, for each dtype.

Tensor Cores load 16 bytes at a time: a contiguous dimension that is no multiple of 16 bytes (8 elements of a 16-bit dtype, 4 of
TF32) falls back to slower kernels; a vocabulary of 50257 columns can cost six times one of 50264. M (batch times
sequence) is measured too and normally does not matter. Padding changes a model's shapes, so it is advised and never
applied by itself: `Tuning.pad(n)` rounds up where a model is built, `gputune pad N` tells what it is worth. 1 means that
no padding helps.

The multiple is the smallest that no larger one outruns with certainty by more than 5 %, in any of a linear layer's three
products.

Source: NVIDIA, "Matrix Multiplication Background User's Guide".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from . import Choice, Numerics, Phase
from ._evidence import NOT_MEASURED, compared, keep, lacking, select

VALUE = dict[Literal["bfloat16", "float16", "float8_e4m3fn", "float32", "tf32"], int]
PHASE: Phase = "code"
USE = "tuning.pad(n)"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability")
LIMITS = (1, 1024)

BENCH = "matmul_alignment"
WORTH = 1.05
"""Kernels for neighbouring sizes differ by a few percent where alignment plays no part: by 4 % in full FP32 on an H200."""


def recommend(facts: Any, measurements: Any) -> Choice:
    rows = select(measurements, BENCH, "throughput")
    dtypes = list(dict.fromkeys(str(row.params["dtype"]) for row in rows))
    needs = {dtype: {dim: _multiple(rows, dtype, dim) for dim in "MNK"} for dtype in dtypes}
    value = {dtype: max(found["N"] or 1, found["K"] or 1) for dtype, found in needs.items() if found["N"] or found["K"]}
    if not value:
        return keep({}, lacking(rows))
    gain = max((_loss(rows, dtype) for dtype in dtypes), key=lambda loss: loss.ratio if loss else 0, default=None)
    reason = "; ".join(f"{dtype}: {_words(found)}" for dtype, found in needs.items())
    paid = gain if gain and max(value.values()) > 1 else None
    if paid:
        reason += f". An aligned size ran up to {paid.ratio:.3g} times as fast as an odd one"
    return Choice(
        value=value,
        gain=paid.ratio if paid else None,
        interval=paid.interval if paid else None,
        reason=reason,
        evidence=(BENCH,),
    )


def gain_of(measurements: Any, dtype: str, n: int, padded: int) -> Any:
    """How many times as fast a dimension N of size `padded` runs as one of `n`, told by sizes that divide alike; None where
    those were not measured.
    """
    here = by_multiple(measurements, dtype, "N", "forward")
    alike = {size: max((one for one in here if size % one == 0), default=0) for size in (n, padded)}
    return compared(here.get(alike[padded]), here.get(alike[n]))


def least_padding(measurements: Any) -> tuple[Any, Any] | None:
    """Of a matmul of the user's own and those of its padded variants that certainly gain over it, the first that none of them
    certainly outruns by more than `WORTH`, and its gain (None for the matmul as it is). None where there are too few samples.
    """
    rows = sorted(select(measurements, "matmul_shapes", "throughput"), key=lambda row: int(row.params["n"]))
    if not rows or any(compared(row, rows[0]) is None for row in rows):
        return None
    gains = [(row, compared(row, rows[0])) for row in rows[1:]]
    gaining = [(row, gain) for row, gain in gains if gain is not None and gain.low > 1]
    found = [(row, gain) for row, gain in [(rows[0], None), *gaining] if not _outrun(row, [one for one, _ in gaining])]
    return found[0] if found else (rows[0], None)


def by_multiple(rows: Any, dtype: str, dim: str, product: str) -> dict[int, Any]:
    """Rows of runs per second, by multiple. Sizes that need the same number of tiles should take the same time, however
    much of the last tile they use.
    """
    found = select(rows, BENCH, "throughput", dtype=dtype, dim=dim, product=product)
    alike = sorted((row for row in found if _is_sized(row)), key=lambda row: int(row.params["multiple"]))
    return {int(row.params["multiple"]): _runs(row) for row in alike}


def _is_sized(row: Any) -> bool:
    """Whether a row tells its size and multiple, as one from a file may not, and is no exactly filled tile's."""
    known = all(isinstance(row.params.get(name), int) and row.params[name] > 0 for name in ("size", "multiple"))
    return known and "full_tiles" not in row.params


def _runs(row: Any) -> Any:
    return replace(row, unit="1/s", samples=tuple(sample / float(row.params["size"]) for sample in row.samples))


def _products(rows: Any, dtype: str, dim: str) -> list[str]:
    return list(
        dict.fromkeys(str(row.params.get("product")) for row in select(rows, BENCH, "throughput", dtype=dtype, dim=dim))
    )


def _multiple(rows: Any, dtype: str, dim: str) -> int | None:
    """The largest that a product needs; None where too little was measured."""
    found = [_of_product(by_multiple(rows, dtype, dim, product)) for product in _products(rows, dtype, dim)]
    return None if None in found else max((one for one in found if one is not None), default=None)


def _of_product(here: dict[int, Any]) -> int | None:
    """The smallest multiple that no larger one certainly outruns by more than `WORTH`."""
    if len(here) < 2:
        return None
    for multiple, row in here.items():
        larger = [other for size, other in here.items() if size > multiple]
        if any(compared(other, row) is None for other in larger):
            return None
        if not _outrun(row, larger):
            return multiple
    return None


def _outrun(row: Any, others: Any) -> bool:
    gains = [compared(other, row) for other in others]
    return any(gain.low > WORTH for gain in gains if gain)


def _loss(rows: Any, dtype: str) -> Any:
    """The largest gain of a forward product's best multiple over an odd size, over N and K."""
    groups = [list(by_multiple(rows, dtype, dim, "forward").values()) for dim in "NK"]
    losses = [loss for here in groups if len(here) >= 2 and (loss := compared(here[-1], here[0]))]
    return max(losses, key=lambda loss: loss.ratio, default=None)


def _words(found: dict[str, int | None]) -> str:
    padded = {dim: multiple for dim, multiple in found.items() if multiple and multiple > 1}
    free = [dim for dim, multiple in found.items() if multiple == 1]
    words = [f"{' and '.join(dims)} in multiples of {m}" for m, dims in _grouped(padded).items()]
    if free:
        words.append(f"{' and '.join(free)} free")
    return ", ".join(words) or NOT_MEASURED


def _grouped(multiples: dict[str, int]) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for dim, multiple in multiples.items():
        groups.setdefault(multiple, []).append(dim)
    return groups
