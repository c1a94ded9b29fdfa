"""How much the random numbers that a model itself draws matter: other ones in a single iteration.

Kernels of half precision, and compiled ones, drop other elements than those of FP32 do from the same random state. So
where gradients differ it is looked at how far they do between two runs in FP32 that differ in this alone.
"""

import functools
from collections.abc import Callable
from typing import Any


def other_numbers(now: Callable[[], bool]) -> None:
    """From now on, where `now` says so, dropout and attention with dropout draw other random numbers."""
    import torch

    functional = torch.nn.functional

    def follow(name: str, rate: Callable[..., float]) -> None:
        original = getattr(functional, name)

        @functools.wraps(original)
        def followed(*inputs: Any, **named: Any) -> Any:
            if now() and not torch.compiler.is_compiling() and rate(*inputs, **named):
                torch.rand(4096, device=inputs[0].device if inputs else None)
            return original(*inputs, **named)

        setattr(functional, name, followed)

    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        follow(name, lambda tensor=None, p=0.5, training=True, *_, **__: p if training else 0.0)
    follow("scaled_dot_product_attention", lambda q=None, k=None, v=None, m=None, dropout_p=0.0, *_, **__: dropout_p)
