"""Finds the models of a program, and the features of torch that it uses itself, during a single step.

Models are the outermost modules that the program calls while gradients are on, or off in an inference-only program.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ..knobs._outputs import opaque, tensors
from .outermost import Outermost

Feature = Literal["autocast", "selective checkpointing", "reentrant checkpointing", "double backward"]


class Witness:
    """Notes which of torch's functions the program uses, from `start` to `stop`. Nothing stays patched afterwards,
    except below a patch of somebody else's.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.seen: set[Feature] = set()
        self._restore: list[Callable[[], None]] = []

    def start(self) -> None:
        import torch
        from torch.utils import checkpoint

        def entered(context: Any, *_: Any) -> None:
            # During backward, checkpointing enters what the forward pass had, and that may be gputune's.
            if hasattr(context, "by_gputune") or torch._C._current_graph_task_id() != -1:
                return
            # Models switch autocast off for parts of themselves, which is no use of it.
            if getattr(context, "_enabled", True) and getattr(context, "device", self.device) == self.device:
                self.seen.add("autocast")

        self._follow(torch.autocast, "__enter__", entered)
        self._follow(checkpoint, "_CachingTorchDispatchMode.__init__", self._note("selective checkpointing"))
        self._follow(checkpoint, "CheckpointFunction.forward", self._note("reentrant checkpointing"))

    def stop(self) -> None:
        while self._restore:
            self._restore.pop()()

    def _note(self, sight: Feature) -> Callable[..., None]:
        return lambda *_, **__: self.seen.add(sight)

    def _follow(self, holder: Any, path: str, note: Callable[..., None]) -> None:
        """Call `note` with the arguments of each call of a function, where this torch has it."""
        *owners, name = path.split(".")
        for owner in owners:
            holder = getattr(holder, owner, None)
        original = vars(holder).get(name) if holder is not None else None
        if original is None:
            return
        static = isinstance(original, staticmethod)
        function = original.__func__ if static else original

        def followed(*inputs: Any, **named: Any) -> Any:
            note(*inputs, **named)
            return function(*inputs, **named)

        patch = staticmethod(followed) if static else followed
        setattr(holder, name, patch)
        self._restore.append(lambda: setattr(holder, name, original) if vars(holder)[name] is patch else None)


MOST_NODES = 100_000
"""The nodes of an autograd graph that are looked at."""


@dataclass(slots=True, kw_only=True)
class Seen:
    """One model, and what its calls showed."""

    model: weakref.ref[Any]
    shapes: list[tuple[int, ...]]
    """The shapes of the tensors that it was called with."""
    functions: list[str] = field(default_factory=list)
    """The custom autograd.Functions behind its outputs that do not say how they behave under autocast."""
    half: bool = False
    """Whether an output was in half precision."""
    autocast: Any = None
    """The dtype of the autocast that was on around the call."""
    inference: bool = False
    """Whether torch's inference mode was on around the call."""
    opaque: str | None = None
    """The class of something in an output that may hold tensors and cannot be looked into."""


class Watch:
    """Between `start` and `stop` it collects models in `seen`, by id: those called with `gradients`, or without."""

    def __init__(self, device: str, *, gradients: bool = True) -> None:
        self.device, self.gradients = device, gradients
        self.seen: dict[int, Seen] = {}
        self.witness = Witness(device)
        self._calls = Outermost(self._note, gradients=gradients)
        self._hooks: list[Any] = []
        """Handles of the hooks on the watched models' outputs, which notice that a program differentiates twice."""

    @property
    def features(self) -> set[Feature]:
        return self.witness.seen

    @property
    def active(self) -> bool:
        return self._calls.active

    def start(self) -> None:
        if not self._calls.active:
            self.witness.start()
            self._calls.start()

    def stop(self) -> None:
        self._calls.stop()
        self.witness.stop()
        while self._hooks:
            self._hooks.pop().remove()

    def _note(self, model: Any, inputs: Any, output: Any) -> None:
        """Nothing that goes wrong here may reach the program."""
        import torch

        try:
            found = list(tensors(output))
            if next(iter(model.parameters()), None) is None:
                return
            if self.gradients and not any(one.requires_grad for one in found):
                return
            if torch._C._current_graph_task_id() != -1:
                return  # a part that is computed again during backward
            seen = self.seen.get(id(model))
            if seen is None or seen.model() is not model:
                shapes = [tuple(one.shape) for one in tensors(inputs)]
                seen = self.seen[id(model)] = Seen(model=weakref.ref(model), shapes=shapes)
                seen.functions = sorted(set(_custom_functions(found)))
            halves = (torch.float16, torch.bfloat16)
            self._hooks += [one.register_hook(self._in_backward) for one in found if one.grad_fn is not None]
            seen.opaque = seen.opaque or opaque(output)
            seen.inference |= torch.is_inference_mode_enabled()
            seen.half |= any(one.dtype in halves for one in found)
            if torch.is_autocast_enabled(self.device):
                seen.autocast = torch.get_autocast_dtype(self.device)
        except Exception:
            return

    def _in_backward(self, _: Any) -> None:
        """With `create_graph`, and only then, gradients are on during backward."""
        import torch

        if torch.is_grad_enabled():
            self.features.add("double backward")


def _custom_functions(outputs: list[Any]) -> Iterator[str]:
    """The names of the user's own autograd.Functions in a graph, except for those decorated with custom_fwd."""
    waiting = [one.grad_fn for one in outputs if one.grad_fn is not None]
    known = set(waiting)
    while waiting and len(known) < MOST_NODES:
        node = waiting.pop()
        function = getattr(node, "_forward_cls", None)
        if function is not None and _is_custom(function):
            yield function.__qualname__
        for following, _ in node.next_functions:
            if following is not None and following not in known:
                known.add(following)
                waiting.append(following)


def _is_custom(function: Any) -> bool:
    home = function.__module__ or ""
    if home.partition(".")[0] == "torch" and not home.startswith("torch._library"):
        return False
    code = getattr(function.forward, "__code__", None)
    return code is None or "autocast_mode" not in code.co_filename
