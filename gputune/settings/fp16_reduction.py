"""The partial sums of a split float16 matmul in float16 (`allow_fp16_reduced_precision_reduction`), as torch allows by default.

Where the inner dimension is long, cuBLAS may split a matmul along it and add the parts at the end. In float16 that end may
overflow to infinity; off, the parts are added in FP32: 1.6 times as slow with an inner dimension of 16384 on a V100 (PyTorch's
figures), while on an H200 eight shapes, of up to 65536, ran equally fast and equally exact either way (torch 2.11).

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
    _reduction.allow("fp16", value)


def current() -> bool:
    return _reduction.allowed("fp16")


def default() -> bool:
    return DEFAULT
