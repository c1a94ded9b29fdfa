"""Compiling a model in place, so that its class and the names in its state_dict stay what they are."""

import warnings
from collections.abc import Callable
from typing import Any


def compile_in_place(model: Any, failed: Callable[[str], None]) -> None:
    """Make calls of a torch.nn.Module run through torch.compile. If compiling fails, the model warns, calls `failed`
    with the reason, and runs uncompiled from then on.

    `torch.compile(model)` would wrap the model and thereby prefix every name in its state_dict; `model.compile()`
    compiles nothing where the model itself is one of torch's own modules, such as a Sequential.
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
