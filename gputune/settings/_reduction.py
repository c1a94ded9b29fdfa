"""Whether cuBLAS may add the parts of a split sum in the narrow dtype itself, which is torch's default."""

from __future__ import annotations

from . import Choice
from ._evidence import keep

REASON = "torch's default; full sums are for accuracy, and their cost is not measured"


def choice() -> Choice:
    return keep(True, REASON)


def allow(dtype: str, value: bool) -> None:
    """`dtype` is fp16 or bf16, as torch names them here."""
    import torch

    setattr(torch.backends.cuda.matmul, _name(dtype), value)


def allowed(dtype: str) -> bool:
    import torch

    return bool(getattr(torch.backends.cuda.matmul, _name(dtype)))


def _name(dtype: str) -> str:
    return f"allow_{dtype}_reduced_precision_reduction"
