"""FP32 convolutions and RNNs in TF32 (cuDNN): on by default in every torch release, on hardware that has it.

Turning it off makes convolutions exact to FP32 and several times slower on Tensor Core hardware. Convolutions and RNNs
are set together: torch's older interface cannot say them apart.

Source: PyTorch, "CUDA semantics" notes.
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import compared, keep, lacking, of_device, one, range_text, text
from ._tf32 import cudnn, set_cudnn

VALUE = bool
PHASE: Phase = "process"
NUMERICS: Numerics = "tf32"
DEPENDS = ("device", "compute_capability")


def recommend(facts: Any, measurements: Any) -> Choice:
    if not of_device(measurements):
        return keep(True, "torch's default; it concerns GPUs only")
    tf32 = one(measurements, "conv", "throughput", dtype="tf32", channels=128, channels_last=True)
    fp32 = one(measurements, "conv", "throughput", dtype="float32", channels=128, channels_last=True)
    error = one(measurements, "conv", "relative_error", dtype="tf32")
    comparison = compared(tf32, fp32)
    if comparison is None or tf32 is None or fp32 is None:
        return keep(True, f"torch's default; {lacking(tf32, fp32)}")
    speeds = f"TF32 convolution ran at {text(tf32.median)} against {text(fp32.median)} TFLOP/s of full FP32"
    if comparison.high < 1 and (inverse := fp32.against(tf32)):
        # Exact and faster: the one case in which the default loses on both counts.
        return Choice(
            value=False,
            gain=inverse.ratio,
            interval=inverse.interval,
            reason=f"full FP32 was faster: {speeds}",
            evidence=("conv",),
        )
    accuracy = f"; relative error {error.median:.1e}" if error else ""
    return keep(True, f"torch's default: {speeds}, {range_text(comparison)}{accuracy}", ["conv"], comparison)


def apply(value: bool) -> None:
    set_cudnn(value)


def current() -> bool | None:
    return cudnn()


def default() -> bool:
    return True
