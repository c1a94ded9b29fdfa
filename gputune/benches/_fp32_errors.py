"""Operations in FP32 and their relative errors against float64, which show in what precision they really ran.

torch and the standard library only: `gputune status --verify` runs this file in interpreters that do not have gputune.
"""

from collections.abc import Callable
from functools import partial
from typing import Any


def errors(device: str) -> dict[str, float]:
    """The relative error of each operation under the present flags, on normal random numbers."""
    import torch

    found = {}
    for name, operation in OPERATIONS.items():
        got, exact = operation(device, torch.Generator(device=device).manual_seed(0))
        found[name] = relative_error(got.double(), exact)
    return found


def relative_error(got: Any, exact: Any) -> float:
    """The Frobenius norm of the difference, by that of the exact result."""
    return float((got - exact).norm() / exact.norm())


def _matmul(device: str, generator: Any) -> tuple[Any, Any]:
    import torch

    x, w = (torch.randn(512, 512, device=device, generator=generator) for _ in range(2))
    return x @ w, x.double() @ w.double()


def _conv(device: str, generator: Any, channels_last: bool = False) -> tuple[Any, Any]:
    import torch

    x = torch.randn(4, 64, 28, 28, device=device, generator=generator)
    w = torch.randn(64, 64, 3, 3, device=device, generator=generator)
    exact = torch.nn.functional.conv2d(x.double(), w.double(), padding=1)
    if channels_last:
        x, w = (tensor.to(memory_format=torch.channels_last) for tensor in (x, w))
    return torch.nn.functional.conv2d(x, w, padding=1), exact


def _lstm(device: str, generator: Any) -> tuple[Any, Any]:
    import torch

    x = torch.randn(16, 32, 256, device=device, generator=generator)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        lstm = torch.nn.LSTM(256, 256, batch_first=True).to(device)
        got = lstm(x)[0].clone()
        return got, lstm.double()(x.double())[0]


OPERATIONS: dict[str, Callable[[str, Any], tuple[Any, Any]]] = {
    "matmul": _matmul,
    "conv": _conv,
    "conv channels_last": partial(_conv, channels_last=True),
    "lstm": _lstm,
}
