"""The multiple that a matmul's N and K (features, vocabulary, heads) should be padded to, for each dtype.

Tensor Cores load 16 bytes at a time: a contiguous dimension that is no multiple of 16 bytes (8 elements of a 16-bit dtype, 4 of
TF32) falls back to slower kernels; a vocabulary of 50257 columns can cost six times one of 50264. M (batch times
sequence) is measured too and normally does not matter. Padding changes a model's shapes, so it is advised and never
applied by itself: `Tuning.pad(n)` rounds up where a model is built. 1 means that no padding helps.

Source: NVIDIA, "Matrix Multiplication Background User's Guide".
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import NOT_MEASURED, keep, lacking, select

VALUE = dict[str, int]
PHASE: Phase = "code"
USE = "tuning.pad(n)"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability")
LIMITS = (1, 1024)

BENCH = "matmul_alignment"
WORTH = 1.10
"""Padding must gain this much: it costs memory and work of its own, and kernels for neighbouring sizes differ by a few percent."""


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


def _by_multiple(rows: Any, dtype: str, dim: str) -> list[Any]:
    """The rows of one dimension, the best aligned last."""
    return sorted(select(rows, BENCH, "throughput", dtype=dtype, dim=dim), key=lambda row: int(row.params["multiple"]))


def _multiple(rows: Any, dtype: str, dim: str) -> int | None:
    """The smallest multiple from which on nothing more is gained; None where too little was measured."""
    here = _by_multiple(rows, dtype, dim)
    if len(here) < 2:
        return None
    gains = [here[-1].against(row) for row in here[:-1]]
    if None in gains:
        return None
    losing = [position for position, gain in enumerate(gains) if _worth(gain)]
    return int(here[max(losing) + 1].params["multiple"]) if losing else 1


def _worth(gain: Any) -> bool:
    return bool(gain.low > 1 and gain.ratio > WORTH)


def _loss(rows: Any, dtype: str) -> Any:
    """The largest gain of the best multiple over an odd size, over N and K."""
    pairs = [here for here in (_by_multiple(rows, dtype, dim) for dim in "NK") if len(here) >= 2]
    losses = [loss for loss in (here[-1].against(here[0]) for here in pairs) if loss]
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
