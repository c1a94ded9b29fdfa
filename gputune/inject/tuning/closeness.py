"""How close two outputs of a model are to each other.

A mask's constant, or a few elements far larger than all others, would hide in a norm that the others are wrong. So
elements far beyond the typical ones of those that differ are compared by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST = 1 << 22
"""So many elements of an output are looked at, from its first row on: 4 million, which take 16 MB."""
LARGE = 100.0
"""An element so many times the median one stands apart."""
CLEAR = 4.0
"""A lead is clear from so many times the error on that a precision explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Its fields are those of `Agreement.plain`."""

    error: float = 0.0
    finite: bool = True
    rows: int = 0
    agreeing: int = 0
    labels: int = 0
    same_labels: int = 0


def rows(tensor: Any) -> Any:
    """The first elements of an output, in rows of the last dimension: floating-point numbers in FP32, complex ones as
    pairs of these, and whole numbers as they are.
    """
    import torch

    tensor = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
    found = tensor.reshape(-1, tensor.shape[-1] if tensor.dim() and tensor.shape[-1] else 1)
    found = found[: max(1, MOST // found.shape[1])]
    return found.float() if found.is_floating_point() else found.clone()


def compared(one: Any, other: Any, explained: float) -> Close:
    """How close another output is to one in FP32, as `rows` gives both. `explained` is the relative error that the
    other's precision explains.
    """
    if not one.is_floating_point():
        return Close(labels=one.numel(), same_labels=int((one == other).sum()))
    finite = bool((other.isfinite() | ~one.isfinite()).all())
    differing = (one != other) & one.isfinite() & other.isfinite()
    if not differing.any():
        return Close(finite=finite)
    size = one.abs().double()
    typical = size[differing & (size > 0)]
    large = size > LARGE * typical.median() if len(typical) else size < 0
    error = (one.double() - other.double()).abs()
    usual, apart = one.isfinite() & other.isfinite() & ~large, differing & large
    worst = float(error[usual].norm() / size[usual].norm()) if (usual & differing).any() else 0.0
    if apart.any():
        worst = max(worst, float((error[apart] / size[apart]).max()))
    scale = size[~large & one.isfinite()].square().mean().sqrt()
    clear, agreeing = _leading(one, other, CLEAR * explained * scale)
    return Close(error=worst, finite=finite, rows=clear, agreeing=agreeing)


def _leading(one: Any, other: Any, lead: Any) -> tuple[int, int]:
    """In how many rows the largest element leads by so much, and in how many of these it is the same one."""
    if one.shape[-1] < 2:
        return 0, 0
    first, second = one.topk(2, dim=-1).values.unbind(-1)
    clear = first - second > lead
    return int(clear.sum()), int((clear & (one.argmax(-1) == other.argmax(-1))).sum())
