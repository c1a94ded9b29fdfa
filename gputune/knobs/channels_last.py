"""Convolution networks in the channels_last (NHWC) memory format: `model.to(memory_format=torch.channels_last)`.

cuDNN's Tensor Core kernels want channels innermost; with torch's default (NCHW) every convolution pays for transposing
there and back. The gain is at channel counts that are multiples of 8; at odd ones it can lose.

Source: PyTorch, "Channels Last Memory Format" tutorial.
"""

import warnings
from collections.abc import Iterator
from typing import Any

from . import Need, Numerics, Obstacle, Phase, Root, Stage, Value, given
from ._memory import other_users
from ._restored import is_channels_last
from .fused_optimizer import is_fused

VALUE = bool
DEFAULT = False
PHASE: Phase = "code"
USE = "model = tuning.prepare(model)"
NUMERICS: Numerics = "rounding"
DEPENDS = ("device", "compute_capability")
STAGE: Stage = "precision"
CANDIDATE = True
NEEDS: tuple[Need, ...] = ("images",)
IN_CALLS = True
FAULTS = r"stride|contiguous|memory.format|channels_last|layout|cudnn|find an engine"


def obstacle(root: Root, value: Value) -> Obstacle | None:
    if has_volumes(root.model):
        return Obstacle("it has 5-d tensors")
    if root.converted:
        return None
    if is_last(root.model) or root.seen.channels_last:
        return Obstacle("its weights or outputs are in channels_last already", users=True)
    if root.is_ddp and not root.in_turn:
        return Obstacle("DistributedDataParallel had wrapped it before")
    if reader := _reader(root):
        return Obstacle(reader)
    weights = list(_images(root.model.parameters()))
    gradients = [] if root.is_ddp else [one.grad for one in weights if one.grad is not None]
    used = other_users(weights, "weights") or other_users(gradients, "gradients")
    return Obstacle(used) if used else None


def _reader(root: Root) -> str | None:
    """The part of the program, in words, that needs weights, gradients or an optimizer's state in torch's usual layout;
    None if there is none.
    """
    bears = "that may not bear gradients in channels_last"
    if any(is_fused(optimizer, here=False) for optimizer in root.optimizers):
        return f"{given('fused', True)}, which goes through memory and not by strides"
    if root.seen.functions:
        return f"{', '.join(root.seen.functions)}: an autograd.Function {bears}"
    hooked = any(one._backward_hooks or one._backward_pre_hooks for one in root.model.modules())
    return f"it has a backward hook {bears}" if hooked else None


def turn_on(root: Root, value: Value) -> Value:
    """Lay out parameters, their gradients and the optimizer's state. A model inside DistributedDataParallel was
    converted before it was wrapped, since the wrap lays out its buckets by the gradients' strides.
    """
    import torch

    if not root.converted:
        _lay_out(root, torch.channels_last)
    root.patch("weights_flattened")
    # A gradient that the program makes itself has the usual layout, of which torch warns.
    warnings.filterwarnings("ignore", "grad and param do not obey the gradient layout contract")
    root.call.channels_last = True
    return True


def turn_off(root: Root) -> None:
    import torch

    _lay_out(root, torch.contiguous_format)
    root.converted = False
    root.call.channels_last = False


def has_volumes(model: Any) -> bool:
    """Whether a model has a 5-d tensor, for which channels_last is an error."""
    return any(one.dim() == 5 for one in [*model.parameters(), *model.buffers()])


def is_last(model: Any) -> bool:
    """Whether a weight or a buffer has the layout. An output that is a buffer would be copied."""
    return any(map(is_channels_last, _images([*model.parameters(), *model.buffers()])))


def convert(model: Any) -> None:
    """Convert a model that has neither gradients nor an optimizer's state yet."""
    import torch

    for parameter in _images(model.parameters()):
        parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)


def _lay_out(root: Root, layout: Any) -> None:
    """Give a model's 4-d weights and their gradients this layout, but for those whose memory has another user by now:
    to move these would part the two, and the layout is a matter of speed.
    """
    for parameter in _images(root.model.parameters()):
        if other_users([parameter], "weights"):
            continue
        parameter.data = parameter.data.contiguous(memory_format=layout)
        if parameter.grad is not None and not other_users([parameter.grad], "gradients"):
            parameter.grad.data = parameter.grad.data.contiguous(memory_format=layout)
        for optimizer in root.optimizers:
            state = optimizer.state.get(parameter, {})
            for name, value in state.items():
                if getattr(value, "shape", None) == parameter.shape:
                    state[name] = value.contiguous(memory_format=layout)


def _images(parameters: Any) -> Iterator[Any]:
    return (one for one in parameters if one.dim() == 4)
