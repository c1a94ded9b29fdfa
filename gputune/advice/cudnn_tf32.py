"""Torch's default, unless full FP32 convolutions run as fast as those in TF32."""

from gputune.advice import Choice, Facts, Measurements
from gputune.advice._evidence import choose, compared, first, missing, of_device, range_text, unmeasured
from gputune.advice.matmul_precision import TF32_ERROR


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    if not of_device(measurements):
        return choose(True, "torch's default; it concerns GPUs only")
    tf32 = first(measurements, "conv", "throughput", dtype="tf32", channels=128, channels_last=True)
    fp32 = first(measurements, "conv", "throughput", dtype="float32", channels=128, channels_last=True)
    error = first(measurements, "conv", "relative_error", dtype="tf32")
    comparison = compared(fp32, tf32)
    if comparison is None or tf32 is None or fp32 is None or error is None:
        return unmeasured(True, f"torch's default; {missing(tf32, fp32, error)}")
    if error.median < TF32_ERROR:
        reason = "torch's default, which has no effect: NVIDIA_TF32_OVERRIDE or the hardware forbids TF32"
        return choose(True, reason, None, "conv")
    speeds = f"full FP32 convolution ran at {fp32.median:.3g} against {tf32.median:.3g} TFLOP/s of TF32"
    ran = f"{speeds}, {range_text(comparison)}"
    if comparison.verdict == "gain":  # exact and faster: the one case in which the default loses on both counts
        return choose(False, ran, comparison, "conv")
    return choose(True, f"torch's default: {ran}; relative error {error.median:.1e}", comparison, "conv")
