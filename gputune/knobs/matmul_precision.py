"""FP32 matmul in TF32: `tf32` or `ieee` (full FP32, torch's default since 1.12).

TF32 rounds the factors of an FP32 matmul to 10 bits of mantissa and multiplies them on Tensor Cores, many times
faster. Sums stay in FP32. Training is usually unharmed; a solver that needs 1e-6 is not. NVIDIA_TF32_OVERRIDE beats
this flag in both directions, which is why the bench looks at the numerical error.

Source: PyTorch, "Numerical accuracy" and "CUDA semantics" notes.
"""

from typing import Literal

from . import Limits, Need, Numerics, Obstacle, Phase, Root, Stage
from ._tf32 import chooses_matmul, matmul, set_matmul, undoing_matmul

VALUE = Literal["tf32", "ieee"]
DEFAULT = "ieee"
PHASE: Phase = "process"
NUMERICS: Numerics = "tf32"
DEPENDS = ("device", "compute_capability")
STAGE: Stage = "precision"
CANDIDATE = "tf32"
NEEDS: tuple[Need, ...] = ("gpu", "tf32")
PRECISION_LIMITS = Limits(loss=0.01, gradients=0.08, along=0.02, parameter=0.25, outputs=0.01)


def apply(value: str) -> None:
    set_matmul(value == "tf32")


def current() -> str:
    return "tf32" if matmul() else "ieee"


undoing, chooses = undoing_matmul, chooses_matmul


def obstacle(root: Root, value: str) -> Obstacle | None:
    """TF32 stays off in a program whose loss factorises matrices (`live.nets.linear_algebra`)."""
    factorises = value == "tf32" and "linear algebra" in root.features
    return Obstacle("the loss factorises matrices, which TF32 would change") if factorises else None
