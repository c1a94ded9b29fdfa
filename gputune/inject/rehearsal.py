"""A compiled model's backward pass, run once before the program runs it.

A call that fails can be repeated without torch.compile; a backward pass cannot, and it is compiled only when it first
runs. torch 2.11 for one assumes another layout of a transposed convolution's gradients than cuDNN gives, and raises.
"""

from typing import Any

from .outputs import tensors


def graphs() -> int:
    """How many graphs torch.compile has made in this process so far."""
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
