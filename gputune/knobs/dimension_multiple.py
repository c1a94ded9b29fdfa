"""The multiple that a matmul's N and K (features, vocabulary, heads) should be padded to, for each dtype.

Tensor Cores load 16 bytes at a time: a contiguous dimension that is no multiple of 16 bytes (8 elements of a 16-bit
dtype, 4 of TF32) falls back to slower kernels; a vocabulary of 50257 columns can cost six times one of 50264. M
(batch times sequence) is measured too and normally does not matter. Padding changes a model's shapes, so it is
advised and never applied by itself: `Tuning.pad(n)` rounds up where a model is built, and `gputune show PROFILE` charts
what it is worth. 1 means that no padding helps.

The multiple is the smallest that no larger one outruns with certainty by more than 5 %, in any of a linear layer's
three products.

Source: NVIDIA, "Matrix Multiplication Background User's Guide".
"""

from typing import Literal

from . import Numerics, Phase

VALUE = dict[Literal["bfloat16", "float16", "float8_e4m3fn", "float32", "tf32"], int]
DEFAULT: dict[str, int] = {}
PHASE: Phase = "code"
USE = "tuning.pad(n)"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability")
LIMITS = (1, 1024)
