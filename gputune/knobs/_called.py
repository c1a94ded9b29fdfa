"""Whom a call is for that stands in a model's `_compiled_call_impl`: torch calls it without saying so."""

import sys
from typing import Any

PLACE = "_compiled_call_impl"
"""The attribute in which torch keeps a compiled call of a module. torch leaves it out of copies and pickles, but a copy
of all attributes (`__dict__`) has it, too."""


def called() -> Any:
    """The module whose call of `_compiled_call_impl` the caller of this function runs for; None if it is not known.
    It is read from the frame of torch's that calls: a descriptor of `torch.nn.Module` would slow all modules' calls.
    """
    frame = sys._getframe(2)
    return frame.f_locals.get("self") if frame.f_code.co_name == "_wrapped_call_impl" else None


def is_transformed() -> bool:
    """Whether a transform of torch.func, forward-mode differentiation or a trace of operators (`make_fx`, fake tensors)
    is in force. Mixed precision fails within some (the backward of LayerNorm below vmap) and would stay in what is
    traced, and torch.compile cannot begin there.
    """
    import torch
    from torch.autograd import forward_ad

    modes = torch._C._TorchDispatchModeKey
    return (
        forward_ad._current_level >= 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_dispatch_mode(modes.PROXY) is not None
        or torch._C._get_dispatch_mode(modes.FAKE) is not None
    )


def saves_through_hooks() -> bool:
    """Whether hooks on what is saved for the backward pass are in force, as within checkpointing, and where activations
    are moved to the CPU. Compiled code may save what they cannot bear, and a rehearsal of a backward pass would call
    them once more. torch 2.4 does not say it.
    """
    import torch

    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is not None and top(True) is not None
