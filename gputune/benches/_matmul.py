"""Matrix products for benches: random operands, the product, and the flags that a dtype's name stands for."""

from collections.abc import Callable
from typing import Any

from gputune.bench_process import Context
from gputune.knobs import _tf32

TORCH_NAMES = {"tf32": "float32", "float8": "float8_e4m3fn"}


def matrix(context: Context, dtype: str, rows: int, columns: int, seed: int = 0) -> Any:
    """Normal random numbers [rows, columns], scaled so that products stay near 1. Zeros would draw less power."""
    import torch

    generator = torch.Generator(device=context.device).manual_seed(seed)
    values = torch.randn(rows, columns, device=context.device, generator=generator) / columns**0.25
    return values.to(getattr(torch, TORCH_NAMES.get(dtype, dtype)))


def operands(context: Context, dtype: str, m: int, n: int, k: int) -> tuple[Any, Any]:
    """Random x [m, k] and w [n, k]."""
    return matrix(context, dtype, m, k), matrix(context, dtype, n, k, seed=1)


def linear(dtype: str, x: Any, w: Any) -> Callable[[], Any]:
    """A function for x [m, k] @ w [n, k].T; in float8 with one scale an operand, to bfloat16.
    Raises RuntimeError in float8 below compute capability 8.9, and for sizes that are no multiple of 16.
    """
    import torch

    if dtype != "float8":
        return lambda: torch.nn.functional.linear(x, w)
    one = torch.ones((), device=x.device)
    how = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16, "use_fast_accum": True}
    return lambda: torch._scaled_mm(x, w.T, **how)


def set_flags(dtype: str) -> None:
    """To be called before `dtype` is measured: `tf32` and `float32` are the same tensors under different flags."""
    import torch

    _tf32.set_matmul(dtype == "tf32")
    _tf32.set_cudnn(dtype == "tf32")
    torch.backends.cudnn.benchmark = False  # an earlier bench may have left it on
