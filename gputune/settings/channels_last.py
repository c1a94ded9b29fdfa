"""Convolution networks in the channels_last (NHWC) memory format: `model.to(memory_format=torch.channels_last)`.

cuDNN's Tensor Core kernels want channels innermost; with torch's default (NCHW) every convolution pays for transposing
there and back. The gain is at channel counts that are multiples of 8; at odd ones it can lose.

Source: PyTorch, "Channels Last Memory Format" tutorial.
"""

from __future__ import annotations

from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import decide, keep, lacking, pooled, select
from ._training import choice_of_option
from .amp_dtype import recommend as recommend_amp

VALUE = bool
PHASE: Phase = "code"
USE = "model = tuning.prepare(model)"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability")


def recommend(facts: Any, measurements: Any) -> Choice:
    return of_family(facts, measurements, "convnet") or _of_convolutions(facts, measurements)


def of_family(facts: Any, measurements: Any, family: str) -> Choice | None:
    return choice_of_option(measurements, family, "channels_last", f"steps of a {family} in channels_last")


def _of_convolutions(facts: Any, measurements: Any) -> Choice:
    """What a run without training steps can say."""
    dtype = _dtype(facts, measurements)
    last = select(measurements, "conv", "throughput", dtype=dtype, channels_last=True, aligned=True)
    first = select(measurements, "conv", "throughput", dtype=dtype, channels_last=False, aligned=True)
    comparison = pooled(last, first)
    if comparison is None:
        return keep(False, lacking(last, first))
    channels = ", ".join(str(row.params["channels"]) for row in last)
    return decide(comparison, (False, True), f"{dtype} convolutions of {channels} channels in channels_last", "conv")


def _dtype(facts: Any, measurements: Any) -> str:
    """What the recommended network computes in, else what cuDNN runs FP32 in by default; of what was measured in both formats."""
    order = ("tf32", "float32", "bfloat16", "float16")
    amp = recommend_amp(facts, measurements).value
    for dtype in (amp, *order):
        rows = select(measurements, "conv", "throughput", dtype=dtype, aligned=True)
        if {row.params["channels_last"] for row in rows} == {False, True}:
            return str(dtype)
    return order[0]
