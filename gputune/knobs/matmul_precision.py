"""FP32 matmul in TF32: `tf32` or `ieee` (full FP32, torch's default since 1.12).

TF32 rounds the factors of an FP32 matmul to 10 bits of mantissa and multiplies them on Tensor Cores, many times
faster. Sums stay in FP32. Training is usually unharmed; a solver that needs 1e-6 is not. NVIDIA_TF32_OVERRIDE beats
this flag in both directions, which is why the bench looks at the numerical error.

Source: PyTorch, "Numerical accuracy" and "CUDA semantics" notes.
"""

from typing import Literal

from . import Choice, Facts, Limits, Measurements, Need, Numerics, Phase, Stage
from ._evidence import choose, compared, first, missing, no_gain, of_device, range_text, unmeasured
from ._tf32 import matmul, set_matmul
from ._training_rows import BENCH, refused_anywhere

VALUE = Literal["tf32", "ieee"]
PHASE: Phase = "process"
NUMERICS: Numerics = "tf32"
DEPENDS = ("device", "compute_capability")
STAGE: Stage = "precision"
CANDIDATE = "tf32"
NEEDS: tuple[Need, ...] = ("gpu", "tf32")
PRECISION_LIMITS = Limits(loss=0.01, gradients=0.08, along=0.02, parameter=0.25, outputs=0.01)
DEFAULT = "ieee"

TF32_ERROR = 1e-5
"""Relative error of a matmul that separates TF32 (about 3e-4) from full FP32 (about 1e-6)."""


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose("ieee", "TF32 is a GPU's format")
    if refused := refused_anywhere(measurements, "tf32"):
        return choose("ieee", f"the accuracy guard refused it: {refused}", None, BENCH)
    tf32 = first(measurements, "precision", "throughput", dtype="tf32")
    fp32 = first(measurements, "precision", "throughput", dtype="float32")
    error = first(measurements, "precision", "relative_error", dtype="tf32")
    comparison = compared(tf32, fp32)
    if comparison is None or tf32 is None or fp32 is None or error is None:
        untold = unmeasured("ieee", missing(tf32, fp32, error))
        has_tf32 = any("tf32" in gpu.tensor_core_dtypes for gpu in facts.gpus)
        return untold if has_tf32 else choose("ieee", "this GPU has no TF32 Tensor Cores")
    if error.median < TF32_ERROR:
        reason = "TF32 was switched on and did not take effect: NVIDIA_TF32_OVERRIDE or the hardware forbids it"
        return choose("ieee", reason, comparison, "precision")
    speeds = f"TF32 matmul ran at {tf32.median:.3g} against {fp32.median:.3g} TFLOP/s"
    if comparison.verdict == "gain":
        return choose("tf32", f"{speeds}; relative error {error.median:.1e}", comparison, "precision")
    exact = first(measurements, "precision", "relative_error", dtype="float32")
    if exact and exact.median >= TF32_ERROR:
        reason = "full FP32 was set and TF32 ran: NVIDIA_TF32_OVERRIDE forces it"
    else:
        reason = f"{no_gain(comparison)}: {speeds}, {range_text(comparison)}"
    return choose("ieee", reason, comparison, "precision")


def apply(value: str) -> None:
    set_matmul(value == "tf32")


def current() -> str:
    return "tf32" if matmul() else "ieee"


def default() -> str:
    return DEFAULT
