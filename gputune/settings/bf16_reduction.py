"""The partial sums of a split bfloat16 matmul in bfloat16 (`allow_bf16_reduced_precision_reduction`), as torch allows by default.

Where the inner dimension is long, cuBLAS may split a matmul along it and add the parts at the end: in bfloat16, with its 8 bits
of mantissa, or off, in FP32. On an H200 eight shapes, of up to 65536, ran equally fast and equally exact either way (torch 2.11).

Source: PyTorch, "CUDA semantics" and "Numerical accuracy" notes.
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase, _reduction

VALUE = bool
PHASE: Phase = "process"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability")
DEFAULT = True


def recommend(facts: Any, measurements: Any) -> Choice:
    return _reduction.choice()


def apply(value: bool) -> None:
    _reduction.allow("bf16", value)


def current() -> bool:
    return _reduction.allowed("bf16")


def default() -> bool:
    return DEFAULT
