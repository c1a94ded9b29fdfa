"""Inference mode around the model's call, in a program that trains nothing; what it returns are usual tensors.

A tensor that is made in it can be neither changed nor differentiated outside. So it stays out where one may get away
other than by what a call returns: to a hook, in an object that cannot be looked into, or, which its first calls show,
as something that the model keeps.
"""

from collections.abc import Callable
from typing import Any

from ...knobs import Value
from ..outputs import usual
from ..root import Root
from . import Obstacle

IN_CALLS = True
LOOKED_AT = 3
"""After so many calls the model is looked through for what it has kept."""


def obstacle(root: Root, value: Value) -> Obstacle | None:
    from torch.nn.modules import module

    if root.gradients:
        return Obstacle("the program computes gradients")
    if root.seen.inference:
        return Obstacle("the program uses inference mode itself", users=True)
    if root.seen.opaque:
        return Obstacle(f"it returns a {root.seen.opaque}, which cannot be looked into")
    hooked = any(one._forward_hooks or one._forward_pre_hooks for one in root.model.modules())
    if hooked or module._global_forward_hooks or module._global_forward_pre_hooks:
        return Obstacle("it has hooks, which may keep what is made in inference mode")
    return None


def put_in(root: Root, value: Value) -> Value:
    left = LOOKED_AT

    def around(run: Callable[[], Any]) -> Any:
        nonlocal left
        import torch

        if _is_differentiated_forward():
            return run()
        with torch.inference_mode():
            output = run()
        if left:
            left -= 1
            if kept := _let_go(root.model):
                take_out(root)
                root.failed("inference_mode", f"the model keeps {kept}, which is made in inference mode")
        return usual(output)

    root.call.around = around
    return True


def take_out(root: Root) -> None:
    root.call.around = None


def _is_differentiated_forward() -> bool:
    import torch
    from torch.autograd import forward_ad

    return forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack() is not None


def _let_go(model: Any) -> str | None:
    """Replace what the model keeps of tensors made in inference mode by usual ones; the name of the first."""
    import torch

    found = None
    for path, module in model.named_modules():
        for holder in (vars(module), module._buffers):
            for name, value in list(holder.items()):
                if isinstance(value, torch.Tensor) and value.is_inference():
                    holder[name] = value.clone()
                    found = found or ".".join(filter(None, (path, name)))
    return found
