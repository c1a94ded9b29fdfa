"""Compiling a model in place, so that its class and the names in its state_dict stay what they are.

A call that fails can be repeated without torch.compile; a backward pass cannot, and it is compiled only when it first
runs. So the backward pass is run once before the program runs it. torch 2.11 for one assumes another layout of a
transposed convolution's gradients than cuDNN gives, and raises.
"""

import warnings
from collections.abc import Callable
from typing import Any

from ..resources.printable import printable
from .outputs import tensors


def graphs() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def rehearse(model: Any, output: Any, device: str) -> None:
    """Run the backward pass behind an output of a model's, with gradients of zero that go nowhere.

    Raises RuntimeError where it fails. It is not run for a model with backward hooks, nor for weights with hooks, which
    would be called; and where memory does not suffice nothing is known.
    """
    import torch

    if any(module._backward_hooks or module._backward_pre_hooks for module in model.modules()):
        return
    weights = [one for one in model.parameters() if one.requires_grad and not one._backward_hooks]
    outputs = [one for one in tensors(output) if one.requires_grad]
    if not weights or not outputs:
        return
    zeros = [torch.zeros_like(one) for one in outputs]
    try:
        with torch.autocast(device, enabled=False):
            torch.autograd.grad(outputs, weights, zeros, retain_graph=True, allow_unused=True)
    except torch.cuda.OutOfMemoryError:
        return
    except Exception as error:
        raise RuntimeError(f"in its backward pass: {type(error).__name__}: {error}") from error


def compiled_call(
    model: Any, failed: Callable[[str], None], *, in_float32: bool = False, rehearse_on: str | None = None
) -> Callable[..., Any]:
    """The call of a torch.nn.Module through torch.compile. If compiling fails, `failed` gets the reason, and this and
    every later call runs uncompiled. With `in_float32` an output that is a tensor is converted as part of the graph,
    where it costs less than on its own. With `rehearse_on`, a type of device, the first call, and each that compiles
    something, raises RuntimeError where its backward pass would fail.

    `torch.compile(model)` would wrap the model and thereby prefix every name in its state_dict; `model.compile()`
    compiles nothing where the model itself is one of torch's own modules, such as a Sequential.
    """
    import torch

    given_up = False
    rehearsed: int | None = None  # the number of graphs by then

    def forward(*inputs: Any, **named: Any) -> Any:
        output = model._call_impl(*inputs, **named)
        if in_float32 and isinstance(output, torch.Tensor) and output.dtype == torch.bfloat16:
            return output.to(torch.float32)
        return output

    compiled = torch.compile(forward)

    def call(*inputs: Any, **named: Any) -> Any:
        nonlocal given_up, rehearsed
        if given_up:
            return model._call_impl(*inputs, **named)
        try:
            output = compiled(*inputs, **named)
        except torch._dynamo.exc.TorchDynamoException as error:
            given_up = True
            failed(str(error).strip().split("\n")[0][:200])
            return model._call_impl(*inputs, **named)
        if rehearse_on and rehearsed != (rehearsed := graphs()):
            rehearse(model, output, rehearse_on)
        return output

    return call


def compile_in_place(model: Any, failed: Callable[[str], None]) -> None:
    """Make calls of a torch.nn.Module run through torch.compile. If compiling fails, the model warns, calls `failed`
    with the reason, and runs uncompiled from then on.
    """

    def warn(why: str) -> None:
        model._compiled_call_impl = None
        failed(why)
        warnings.warn(printable(f"gputune: torch.compile failed, and the model runs without it: {why}"), stacklevel=3)

    model._compiled_call_impl = compiled_call(model, warn)
