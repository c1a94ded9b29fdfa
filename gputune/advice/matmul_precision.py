"""TF32 if its matmuls gain, take effect, and no network's accuracy guard refuses it."""

from gputune.advice import Choice, Facts, Measurements
from gputune.advice._evidence import choose, compared, first, missing, no_gain, of_device, range_text, unmeasured
from gputune.advice._training_rows import BENCH, refused_anywhere

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
