"""FP32 convolutions and RNNs in TF32 (cuDNN): on by default in every torch release, on hardware that has it.

Turning it off makes convolutions exact to FP32 and several times slower on Tensor Core hardware. Convolutions and RNNs
are set together: torch's older interface has one flag for both.

Source: PyTorch, "CUDA semantics" notes.
"""

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import choose, compared, first, missing, of_device, range_text, unmeasured
from ._tf32 import cudnn, set_cudnn
from .matmul_precision import TF32_ERROR

VALUE = bool
PHASE: Phase = "process"
NUMERICS: Numerics = "tf32"
DEPENDS = ("device", "compute_capability")
DEFAULT = True


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


apply, current = set_cudnn, cudnn


def default() -> bool:
    return DEFAULT
