"""torch's inference mode around a model's call (`torch.inference_mode`), in a program that computes no gradients.

Beside what `torch.no_grad` leaves out, tensors have no version counter, which saves the host some work for each
operation. What is made in it may be neither changed nor differentiated outside, so a model's outputs are copied. It is
tried by `gputune tune` on a program's own calls and by no bench: it concerns none that trains.

Source: PyTorch, "Autograd mechanics".
"""

from collections.abc import Callable
from typing import Any

from . import Need, Numerics, Obstacle, Phase, Root, Stage, Value
from ._restored import usual

VALUE = bool
DEFAULT = False
UNMEASURED = "it concerns programs that train nothing, and is tried on their own calls: gputune tune"
PHASE: Phase = "code"
USE = "with torch.inference_mode(): ..."
NUMERICS: Numerics = "exact"
DEPENDS = ("device", "torch")
STAGE: Stage = "options"
CANDIDATE = True
NEEDS: tuple[Need, ...] = ("inference",)
SPARES_HOST = True
IN_CALLS = True
FAULTS = r"inference"

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


def turn_on(root: Root, value: Value) -> Value:
    """The mode is turned off if the model's first calls show that it keeps a tensor that was made in the mode."""
    left = LOOKED_AT

    def around(run: Callable[[], Any]) -> Any:
        nonlocal left
        import torch
        from torch.autograd import forward_ad

        is_transformed = torch._C._functorch.peek_interpreter_stack() is not None
        if is_transformed or forward_ad._current_level >= 0:  # it is differentiated forward
            return run()
        with torch.inference_mode():
            output = run()
        if left:
            left -= 1
            if kept := _let_go(root.model):
                turn_off(root)
                root.failed("inference_mode", f"the model keeps {kept}, which is made in inference mode")
        return usual(output)

    root.call.around = around
    return True


def turn_off(root: Root) -> None:
    root.call.around = None


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
