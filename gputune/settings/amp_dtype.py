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
from .matmul_precision import TF32_ERROR, one_error
from .matmul_precision import recommend as recommend_matmul

VALUE = Literal["bfloat16", "float16"] | None
PHASE: Phase = "code"
USE = "with tuning.autocast():"
NUMERICS: Numerics = "mixed"
DEPENDS = ("device", "compute_capability")

WORTH_A_SCALER = 1.25
"""float16 must be so many times as fast as bfloat16 to be chosen over it."""


def recommend(facts: Any, measurements: Any) -> Choice:
    base_name = "tf32" if recommend_matmul(facts, measurements).value == "tf32" else "float32"
    base = one(measurements, "precision", "throughput", dtype=base_name)
    rows = {name: one(measurements, "precision", "throughput", dtype=name) for name in ("bfloat16", "float16")}
    measured = {name: row for name, row in rows.items() if row is not None}
    if base is not None and not measured:
        return keep(None, "this device multiplies neither bfloat16 nor float16 natively")
    if base is None:
        return keep(None, lacking(base))
    name, row = _better(measured)
    comparison = compared(row, base)
    if comparison is None:
        return keep(None, lacking(base, row))
    label = _label(base_name, measurements)
    if comparison.verdict == "gain":
        return change(name, comparison, _why(name, row, base, label, measurements), ["precision"])
    return keep(
        None,
        f"{no_gain(comparison)}: {name} matmul ran {range_text(comparison)} as fast as {label}",
        ["precision"],
        comparison,
    )


def _better(measured: dict[str, Any]) -> tuple[str, Any]:
    """Of both, bfloat16, unless float16 is so much faster that it is worth its GradScaler and its narrow range."""
    if len(measured) == 2:
        advantage = compared(measured["float16"], measured["bfloat16"])
        if advantage and advantage.low > 1 and advantage.ratio > WORTH_A_SCALER:
            return "float16", measured["float16"]
    return next(iter(measured.items()))


def _why(name: str, row: Any, base: Any, label: str, measurements: Any) -> str:
    scaler = "with a GradScaler" if name == "float16" else "no GradScaler needed"
    return (
        f"{name} matmul ran at {text(row.median)} against {text(base.median)} TFLOP/s of {label}; "
        f"relative error {one_error(measurements, name):.1e}; {scaler}"
    )


def _label(dtype: str, measurements: Any) -> str:
    """What the baseline ran in, by its error: NVIDIA_TF32_OVERRIDE=1 makes TF32 of full FP32."""
    if dtype == "tf32":
        return "TF32"
    return "FP32, which ran as TF32" if one_error(measurements, "float32") >= TF32_ERROR else "FP32"
