"""What the benches of matrix products share: random operands, and the flags under which a dtype's name holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gputune.benches import Context
from gputune.settings import _tf32


def operands(context: Context, dtype: str, m: int, n: int, k: int) -> tuple[Any, Any]:
    """Random x [m, k] and w [n, k], scaled so that products stay near 1 in every dtype. Zeros would draw less power."""
    import torch

    kind = getattr(torch, "float32" if dtype == "tf32" else dtype)
    generator = torch.Generator(device=context.device).manual_seed(0)
    x = torch.randn(m, k, device=context.device, generator=generator)
    w = torch.randn(n, k, device=context.device, generator=generator) / k**0.5
    return x.to(kind), w.to(kind)


def flags_for(dtype: str) -> Callable[[], None]:
    """What to call before measuring `dtype`: `tf32` and `float32` are the same tensors under different flags."""

    def set_flags() -> None:
        _tf32.set_matmul(dtype == "tf32")
        _tf32.set_cudnn(dtype == "tf32")

    return set_flags
