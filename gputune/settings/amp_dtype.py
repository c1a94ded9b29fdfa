"""The dtype of automatic mixed precision: `bfloat16`, `float16` or none.

`torch.autocast` runs matmuls and convolutions in the named dtype and keeps the rest in FP32. bfloat16 has FP32's range
and needs nothing else; float16 overflows at 65504 and its gradients vanish below 6e-8, so a GradScaler belongs with it:
`Tuning.grad_scaler()` is enabled for float16 only. Below compute capability 8.0 torch emulates bfloat16 slowly, so float16
is the choice there. Mixed precision changes results, so it is never applied behind the user's back: it takes a line in
the training script.

Source: PyTorch, "Automatic Mixed Precision" recipe.
"""

from __future__ import annotations

from typing import Any, Literal

from . import Choice, Numerics, Phase
from ._evidence import change, compared, keep, lacking, no_gain, one, range_text, text
from .matmul_precision import one_error
from .matmul_precision import recommend as recommend_matmul

VALUE = Literal["bfloat16", "float16"] | None
PHASE: Phase = "code"
USE = "with tuning.autocast():"
NUMERICS: Numerics = "mixed"
DEPENDS = ("device", "compute_capability")


def recommend(facts: Any, measurements: Any) -> Choice:
    base_name = "tf32" if recommend_matmul(facts, measurements).value == "tf32" else "float32"
    base = one(measurements, "precision", "throughput", dtype=base_name)
    rows = {name: one(measurements, "precision", "throughput", dtype=name) for name in ("bfloat16", "float16")}
    measured = {name: row for name, row in rows.items() if row is not None}
    if base is not None and not measured:
        return keep(None, "this device multiplies neither bfloat16 nor float16 natively")
    if base is None:
        return keep(None, lacking(base))
    # bfloat16 first: where both gain, it needs no GradScaler and cannot overflow.
    for name, row in measured.items():
        comparison = compared(row, base)
        if comparison and comparison.verdict == "gain":
            return change(name, comparison, _why(name, row, base, base_name, measurements), ["precision"])
    name, row = next(iter(measured.items()))
    comparison = compared(row, base)
    if comparison is None:
        return keep(None, lacking(base, row))
    return keep(
        None,
        f"{no_gain(comparison)}: {name} matmul ran {range_text(comparison)} as fast as {_label(base_name)}",
        ["precision"],
        comparison,
    )


def _why(name: str, row: Any, base: Any, base_name: str, measurements: Any) -> str:
    scaler = "with a GradScaler" if name == "float16" else "no GradScaler needed"
    return (
        f"{name} matmul ran at {text(row.median)} against {text(base.median)} TFLOP/s of {_label(base_name)}; "
        f"relative error {one_error(measurements, name):.1e}; {scaler}"
    )


def _label(dtype: str) -> str:
    return {"tf32": "TF32", "float32": "FP32"}[dtype]
