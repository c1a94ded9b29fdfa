"""Compiling a model in place, so that its class and the names in its state_dict stay what they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


def compile_in_place(model: Any, failed: Callable[[str], None]) -> None:
    """Make calls of a torch.nn.Module run through torch.compile; where compiling fails, they run as before, with a warning, and
    `failed` is told why.

    `torch.compile(model)` would put a wrapper around it, with another prefix in every checkpoint; `model.compile()` compiles
    nothing where the model itself is one of torch's own modules, as a Sequential is.
    """
    import torch

    def forward(*inputs: Any, **named: Any) -> Any:
        return model._call_impl(*inputs, **named)

    compiled = torch.compile(forward)

    def call(*inputs: Any, **named: Any) -> Any:
        try:
            return compiled(*inputs, **named)
        except torch._dynamo.exc.TorchDynamoException as error:
            model._compiled_call_impl = None
            why = str(error).strip().split("\n")[0][:200]
            failed(why)
            warnings.warn(f"gputune: torch.compile failed, and the model runs without it: {why}", stacklevel=2)
            return model(*inputs, **named)

    model._compiled_call_impl = call
