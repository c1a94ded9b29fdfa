"""Every patch of torch that gputune makes in a user's program, but for those of DataLoaders (`loader_patches`), of what
flattens weights (`flattened`), of nets (`nets/`), of a tune (`tuning/`) and of what writes files (`scratch/`).

Each function makes one patch and returns a function that undoes it. A place that somebody else has patched since is
left as it is. A patch that makes an event of the observer's has the event's name.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from traceback import walk_stack
from typing import Any, Literal

GPUTUNE = __package__.removesuffix("live")
"""What the names of gputune's modules begin with in this process."""
Undo = Callable[[], object]
Function = Callable[..., Any]
Feature = Literal[
    "autocast", "selective checkpointing", "double backward", "backward within backward", "backward by parts",
    "gradients of outputs", "hooks on activations", "linear algebra", "logarithms", "collectives",
]  # fmt: skip
"""A feature of torch that a program uses itself, and that a setting may not bear."""


def replaced(holder: Any, name: str, new: Any) -> Undo:
    """Replace a function of a class or module, or something else; a static method by another one."""
    original = vars(holder)[name]
    patch = staticmethod(new) if isinstance(original, staticmethod) else new
    setattr(holder, name, patch)
    return lambda: setattr(holder, name, original) if vars(holder)[name] is patch else None


def together(undoing: Sequence[Undo]) -> Undo:
    return lambda: [one() for one in reversed(undoing)]


def noted(holder: Any, name: str, note: Function) -> Undo:
    """Have `note` called before a function, with what that gets, if this torch has the function."""
    if holder is None or name not in vars(holder):
        return lambda: None
    original = getattr(holder, name)

    @functools.wraps(original)
    def patch(*inputs: Any, **named: Any) -> Any:
        note(*inputs, **named)
        return original(*inputs, **named)

    return replaced(holder, name, patch)


def model_called(begun: Callable[[Any, Any], Function | None]) -> Undo:
    """Wrap the call of every module, which torch has no documented hook for. `begun` is called with the module and its
    inputs (positional and named) as an outermost call begins, and returns None, or what is to be called with both and
    the output.

    A wrapped call costs a microsecond, and torch.compile traces what it reaches. So the wrap takes itself out of the
    way during each outermost call that `begun` is concerned with.
    """
    import torch

    kind = torch.nn.Module
    original, installed = kind.__call__, True

    def followed(self: Any, *inputs: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling() or kind.__call__ is not followed or torch._C._get_tracing_state():
            return original(self, *inputs, **named)
        ended = begun(self, (inputs, named))
        if ended is None:
            return original(self, *inputs, **named)
        kind.__call__ = original
        try:
            output = original(self, *inputs, **named)
        finally:
            if installed and kind.__call__ is original:
                kind.__call__ = followed
        ended(self, (inputs, named), output)
        return output

    def undo() -> None:
        nonlocal installed
        installed = False
        if kind.__call__ is followed:
            kind.__call__ = original
        dynamo: Any = sys.modules.get("torch._dynamo.utils")  # which keeps what it finds when it is imported
        if getattr(dynamo, "unpatched_nn_module_call", None) is followed:
            dynamo.unpatched_nn_module_call = original

    kind.__call__ = followed
    return undo


def module_registered(registered: Callable[[Any, str, Any], None]) -> Undo:
    """Torch's hook on a module that is about to belong to another: DistributedDataParallel then looks at its model."""
    from torch.nn.modules.module import register_module_module_registration_hook as register

    return register(registered).remove  # type: ignore[no-any-return]


def optimizer_stepping(begun: Callable[[Any], None]) -> Undo:
    """Torch's hook before any optimizer's step. It cannot be undone while torch goes through these hooks."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook as register

    return register(_uncompiled(begun)).remove  # type: ignore[no-any-return]


def optimizer_stepped(ended: Callable[[Any], None]) -> Undo:
    """Torch's hook after any optimizer's step. It cannot be undone while torch goes through these hooks."""
    from torch.optim.optimizer import register_optimizer_step_post_hook as register

    return register(_uncompiled(ended)).remove  # type: ignore[no-any-return]


def _uncompiled(told: Callable[[Any], None]) -> Function:
    """A hook on steps that is not compiled where the program compiles its steps."""
    uncompiled = functools.cache(lambda: sys.modules["torch._dynamo"].disable(told))

    def hook(optimizer: Any, *_: Any) -> None:
        (uncompiled() if "torch._dynamo" in sys.modules else told)(optimizer)

    vars(hook)["_torchdynamo_disable"] = True  # what disable() marks its function with
    return hook


def backward_begun(begun: Callable[[list[Any]], None]) -> Undo:
    """Wrap both ways to begin a backward pass, for which there is no hook, and `GradScaler.scale`, since a scaled loss
    does not say what it was before. `begun` gets the tensors as they were before they were scaled. A pass within
    another one, as of checkpointing, is not told.
    """
    import torch

    depth, scaled = 0, list[tuple[weakref.ref[Any], Any]]()
    original_scale = torch.amp.GradScaler.scale

    @functools.wraps(original_scale)
    def scale(self: Any, outputs: Any) -> Any:
        answer = original_scale(self, outputs)
        if isinstance(answer, torch.Tensor):
            scaled[:] = [pair for pair in scaled if pair[0]() is not None]
            scaled.append((weakref.ref(answer), outputs.detach()))
        return answer

    def followed(original: Function) -> Function:
        @functools.wraps(original)
        def backward(*inputs: Any, **named: Any) -> Any:
            nonlocal depth
            if torch.compiler.is_compiling():
                return original(*inputs, **named)
            depth += 1
            try:
                if depth == 1:
                    given = inputs[0] if inputs else named.get("tensors")
                    losses = [given] if isinstance(given, torch.Tensor) else given or ()
                    begun([next((was for now, was in reversed(scaled) if now() is one), one) for one in losses])
                return original(*inputs, **named)
            finally:
                depth -= 1

        return backward

    holders: list[Any] = [torch.Tensor, torch.autograd]
    backwards = [replaced(one, "backward", followed(one.backward)) for one in holders]
    return together([*backwards, replaced(torch.amp.GradScaler, "scale", scale)])


def gradients_begun(begun: Callable[[], None]) -> Undo:
    """Wrap what every backward pass begins with, so that there is no frame around the pass, where warnings point."""
    import torch

    return noted(torch.autograd, "_make_grads", lambda *_, **__: begun())


def activation_hooked(hooked: Callable[[Any], None]) -> Undo:
    """Wrap what puts a hook on a tensor, for all but gputune's own code."""
    import torch

    def note(tensor: Any, *_: Any, **__: Any) -> None:
        if not str(sys._getframe(2).f_globals.get("__name__")).startswith(GPUTUNE):
            hooked(tensor)

    return noted(torch.Tensor, "register_hook", note)


def module_hooked(hooked: Callable[[Any], None]) -> Undo:
    """Wrap what puts hooks on modules' calls, for all hooks but torch's own, as of pruning."""
    import torch
    from torch.nn.modules import module

    def note(one: Any, hook: Any) -> None:
        if not str(getattr(hook, "__module__", "")).startswith("torch."):
            hooked(one)

    kinds = ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook")
    own = [noted(torch.nn.Module, f"register_{kind}", lambda one, hook, *_, **__: note(one, hook)) for kind in kinds]
    of_all = [noted(module, f"register_module_{kind}", lambda hook, *_, **__: note(None, hook)) for kind in kinds]
    return together([*own, *of_all])


def capture_begun(begun: Callable[[], None]) -> Undo:
    """Wrap what begins to capture a CUDA graph, for all but torch's compiler, which captures what it has compiled."""
    import torch

    def note(*_: Any, **__: Any) -> None:
        names = (str(frame.f_globals.get("__name__")) for frame, _ in walk_stack(None))
        if not any(name.startswith("torch._inductor.") for name in names):
            begun()

    return noted(getattr(torch.cuda, "CUDAGraph", None), "capture_begin", note)


def scripted(place: str) -> Undo:
    """Have torch.jit.script leave an attribute of modules alone, as it does torch's own."""
    from torch.jit import _recursive

    ignored = getattr(_recursive, "ignored_attributes", [])
    ignored.append(place)
    return lambda: ignored.remove(place)


def optimizer_saved(change: Callable[[Any, Any], Any], copied: Callable[[Any, Any], Any]) -> Undo:
    """Have deep copies and pickles of optimizers hold what `change` makes of one and its state, for which there is no
    hook; an instance's attribute would follow it into others. A shallow copy has the state itself; `copied` returns it.
    """
    import torch

    kind: Any = torch.optim.Optimizer
    original = kind.__getstate__

    def shallow(self: Any) -> Any:
        make, given, state = self.__reduce_ex__(4)[:3]
        made = make(*given)
        made.__setstate__(original(self) if vars(kind)["__getstate__"] is type(self).__getstate__ else state)
        return copied(self, made)

    kind.__copy__ = shallow
    saved = replaced(kind, "__getstate__", lambda self: change(self, original(self)))
    return together([saved, lambda: delattr(kind, "__copy__")])


def weights_flattened() -> Undo:
    """Have what flattens weights and gradients bear any layout."""
    from .flattened import patched

    return patched()


def feature_used(used: Callable[[Feature, str | None], None]) -> Undo:
    """Wrap functions that only a program that uses a feature passes through."""
    from .features import patched

    return patched(used)
