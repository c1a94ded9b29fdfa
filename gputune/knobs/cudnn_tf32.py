"""FP32 convolutions and RNNs in TF32 (cuDNN): on by default in every torch release, on hardware that has it.

Turning it off makes convolutions exact to FP32 and several times slower on Tensor Core hardware. Convolutions and RNNs
are set together: torch's older interface has one flag for both.

Source: PyTorch, "CUDA semantics" notes.
"""

from . import Numerics, Phase
from ._tf32 import chooses_cudnn, cudnn, set_cudnn, undoing_cudnn

VALUE = bool
DEFAULT = True
PHASE: Phase = "process"
NUMERICS: Numerics = "tf32"
DEPENDS = ("device", "compute_capability")


apply, current = set_cudnn, cudnn
undoing, chooses = undoing_cudnn, chooses_cudnn
