"""Finds the models of a program, and the features of torch that it uses itself, during a single step.

Models are the outermost modules that the program calls while gradients are on, or off in an inference-only program.
"""

import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..knobs._called import saves_through_hooks
from ..knobs._outputs import changed, nodes_behind, opaque, tensors
from ..knobs._restored import asks_for_last
from ..knobs._signals import is_for_the_program
from . import observer
from .before import Before
from .held import Attribute, Outside, values
from .nets.compiling import signature
from .nets.gradients import Pattern, pattern
from .nets.probabilities import are_sigmoids
from .nets.varying_shapes import images
from .patches import Feature
from .states import States

PATIENCE = 3
"""So many iterations are watched for a model. A step that calls its parent class's counts as two."""


@dataclass(slots=True, kw_only=True)
class Seen:
    """One model, and what its calls showed."""

    model: weakref.ref[Any]
    shapes: list[tuple[int, ...]]
    """The shapes of the tensors that it was called with."""
    signatures: set[Any] = field(default_factory=set)
    """The shapes and numbers in the inputs of its calls (`nets.compiling.signature`)."""
    images: set[Any] = field(default_factory=set)
    """The shapes of what may be images in them (`nets.varying_shapes.images`)."""
    requires: set[Pattern] = field(default_factory=set)
    """Where outputs of its calls required gradients."""
    functions: list[str] = field(default_factory=list)
    """The custom autograd.Functions behind its outputs."""
    without_custom_fwd: list[str] = field(default_factory=list)
    """The custom autograd.Functions whose forward does not say, by `custom_fwd`, how it behaves under autocast."""
    scatters: bool = False
    """Whether its outputs come from sums to places that an index gives."""
    sigmoids: bool = False
    """Whether an output is the result of a sigmoid."""
    outsized: bool = False
    """Whether, on a CPU, a convolution behind them may have a kernel or a stride that is larger than its input."""
    half: bool = False
    """Whether an output was in half precision."""
    channels_last: bool = False
    """Whether an output was in channels_last, and no input was."""
    autocast: Any = None
    """The dtype of the autocast that was on around the call."""
    inference: bool = False
    """Whether torch's inference mode was on around the call."""
    opaque: str | None = None
    """The class of something in an output that may hold tensors and cannot be looked into."""
    changes_numbers: bool = False
    """Whether its forward drew from Python's random numbers, or changed a float or a deque that it holds."""
    computed: list[Attribute] = field(default_factory=list)
    """The attributes in which its forward left other tensors."""
    changes_outside: str | None = None
    """The name of a variable outside of the model that its forward changed, or took something from."""
    keeps: str | None = None
    """An attribute that holds such tensors where they cannot be replaced."""
    changes_weights: bool = False
    """Whether its forward wrote to its weights."""
    uncopied: str | None = None
    """The class of an output that cannot be copied."""
    trains: bool = False
    """Whether its forward changed gradients of its weights, or stepped an optimizer."""
    hooked: bool = False
    """Whether hooks on what is saved for backward were in force around the call."""


class ModelFinder(observer.Follower):
    """Collects, from `start` to `stop`, models by their id. Nothing stays patched or hooked afterwards."""

    def __init__(self, device: str, *, gradients: bool = True) -> None:
        self.device, self.gradients = device, gradients
        self.seen: dict[int, Seen] = {}
        self.features: set[Feature] = set()
        self.is_active, self._patience = False, PATIENCE
        self._before: tuple[States, Before | None, Outside] | None = None
        """During a model's first call: what that call may change, as it was before it."""
        self._given: tuple[Any, Any] = (None, None)
        """The signature and the images of the last call's inputs, into which a model may put more."""
        self._has_stepped = False
        """Whether an optimizer has stepped since the last call began."""
        self._calls = False
        """Whether a call of a model runs."""
        self._hooks: list[tuple[Any, Callable[[], Any]]] = []
        """Handles of the hooks on the models' outputs and on what they keep, which notice what a program does with
        gradients; and these tensors, where another may be computed from them."""
        self._watched: dict[int, weakref.ref[Any]] = {}
        """The tensors with such hooks, by their id."""

    def start(self) -> None:
        self.is_active, self._patience = True, PATIENCE
        observer.follow(self)

    def stop(self) -> None:
        self.is_active = False
        observer.leave(self)
        self._before = None
        while self._hooks:
            handle, part = self._hooks.pop()
            if (one := part()) is not None and _is_asked_for(one):  # also where no gradient arrived yet
                self.features.add("gradients of outputs")
            handle.remove()

    def has_looked(self) -> bool:
        """Whether, after one more iteration, it has models or waits for none any longer. Then it has stopped."""
        self._patience -= 1
        if self._patience and not self.seen:
            return False
        self.stop()
        return True

    def feature_used(self, feature: Feature, device: str | None) -> None:
        import torch

        is_outside = not self._calls and torch._C._current_graph_task_id() == -1
        if device in (self.device, None) and not (feature == "collectives" and is_outside):
            self.features.add(feature)

    def optimizer_stepped(self, optimizer: Any) -> None:
        self._has_stepped |= self.home == observer.here()  # not in another thread meanwhile

    def activation_hooked(self, activation: Any) -> None:
        if self._calls and activation.grad_fn is not None:
            self.features.add("hooks on activations")

    def model_calling(self, model: Any, inputs: Any) -> None:
        self._has_stepped, self._calls = False, True
        self._given = signature(inputs), images(inputs)
        states = States(weakref.ref(model), self.device)
        self._before = None if self._of(model) else (states, states.before_call(()), Outside(model))

    def model_called(self, model: Any, inputs: Any, output: Any) -> None:
        self._calls = False
        try:
            self._look_at(model, inputs, output)
        except Exception as error:
            if is_for_the_program(error):
                raise
            self.seen.pop(id(model), None)  # what is half known gets nothing; the next model is looked at

    def _of(self, model: Any) -> Seen | None:
        seen = self.seen.get(id(model))
        return seen if seen is not None and seen.model() is model else None  # another one that is gone had this id

    def _look_at(self, model: Any, inputs: Any, output: Any) -> None:
        import torch
        from torch.nn.utils.parametrize import ParametrizationList

        found = list(tensors(output))
        if next(iter(model.parameters()), None) is None or isinstance(model, ParametrizationList):  # a weight is read
            return
        if self.gradients and not any(one.requires_grad for one in found):
            return
        if torch._C._current_graph_task_id() != -1:
            return  # a part that is computed again during backward
        seen = self._of(model)
        if seen is None:
            shapes = [tuple(one.shape) for one in tensors(inputs)]
            seen = self.seen[id(model)] = Seen(model=weakref.ref(model), shapes=shapes)
            nodes = nodes_behind(found)
            functions = {node._forward_cls for node in nodes if hasattr(node, "_forward_cls")}
            functions = {one for one in functions if _is_custom(one)}
            seen.functions = sorted({one.__qualname__ for one in functions})
            seen.without_custom_fwd = sorted({one.__qualname__ for one in functions if not _has_custom_fwd(one)})
            seen.scatters = any(one.name().startswith(("ScatterAdd", "ScatterReduce", "IndexAdd")) for one in nodes)
            seen.sigmoids = are_sigmoids(found)
            seen.outsized = self.device == "cpu" and any(map(_is_outsized, nodes))
        halves = (torch.float16, torch.bfloat16)
        self._hook({id(one): one for one in found if one.grad_fn is not None}.values())
        seen.signatures.add(self._given[0])
        seen.images.add(self._given[1])
        seen.requires.add(pattern(output))
        seen.opaque = seen.opaque or opaque(output)
        seen.uncopied = seen.uncopied or _uncopied(output)
        seen.inference |= torch.is_inference_mode_enabled()
        if not any(map(asks_for_last, tensors(inputs))):
            seen.channels_last |= any(map(asks_for_last, found))
        seen.hooked |= saves_through_hooks()
        seen.half |= any(one.dtype in halves for one in found)
        if torch.is_autocast_enabled(self.device):
            seen.autocast = torch.get_autocast_dtype(self.device)
        if self._before is not None:
            (states, before, outside), self._before = self._before, None
            states.after_call(before)
            others = outside.changed(model)
            seen.changes_outside = next(iter(others), None)
            seen.changes_numbers, seen.changes_weights = states.changes_numbers, states.changes_weights
            seen.trains = states.changes_gradients or self._has_stepped
            seen.computed, keeps = states.computed
            seen.keeps = keeps or next(
                (name for name, one in others.items() if any(map(_is_float, tensors(one)))), None
            )
            self._hook_kept(seen.computed)

    def _hook(self, outputs: Collection[Any]) -> None:
        passes: dict[int, int] = {}
        for number, one in enumerate(outputs):
            part = weakref.ref(one) if len(outputs) > 1 else lambda: None  # nothing else is computed from it
            self._watch(one, part, number, passes)

    def _hook_kept(self, kept: Collection[Attribute]) -> None:
        """Hook what a call has left in the model."""
        for one in (one for value in values(kept) for one in tensors(value)):
            if one.grad_fn is not None:
                self._watch(one, weakref.ref(one), 0, {})

    def _watch(self, one: Any, part: Callable[[], Any], number: int, passes: dict[int, int]) -> None:
        if (known := self._watched.get(id(one))) is None or known() is not one:
            self._watched[id(one)] = weakref.ref(one)
            self._hooks.append((one.register_hook(partial(self._in_backward, part, number, passes)), part))

    def _in_backward(self, part: Callable[[], Any], number: int, passes: dict[int, int], _: Any) -> None:
        """The gradient of an output arrives. `passes` are the backward passes, by the number of an output of the same
        call, in which its first gradient did.
        """
        import torch

        passes.setdefault(number, torch._C._current_graph_task_id())
        if len(set(passes.values())) > 1:
            self.features.add("backward by parts")
        one = part()
        if one is not None and one.grad_fn is not None and (_is_asked_for(one) or _ends_at(one.grad_fn)):
            self.features.add("gradients of outputs")


def _is_float(tensor: Any) -> bool:
    return bool(tensor.is_floating_point())


def _is_asked_for(output: Any) -> bool:
    """Whether the program, too, waits for the gradient of an output."""
    hooks = output._backward_hooks or ()  # none any more behind what writes to it
    return bool(output.retains_grad or len(hooks) > 1)


def _ends_at(node: Any) -> bool:
    """Whether the backward pass that runs goes no further than a node, whose gradient alone was asked for."""
    import torch

    try:
        following = [one for one, _ in node.next_functions if one is not None]
        return not any(map(torch._C._will_engine_execute_node, following))
    except RuntimeError:  # torch does not say it of a leaf whose gradient was asked for
        return False


def _uncopied(output: Any) -> str | None:
    try:
        changed(output, lambda tensor: tensor.detach())
    except Exception as error:
        if is_for_the_program(error):
            raise
        return type(output).__name__
    return None


def _is_outsized(node: Any) -> bool:
    """Whether a convolution has, or may have, a kernel or a stride that is larger than its input. It is told by shapes
    alone, where torch knows these (2.8, at least): to read the input, as it was saved, would compute a checkpointed
    part again.
    """
    if node.name() != "ConvolutionBackward0" or node._saved_transposed:
        return False
    strides, pads = node._saved_stride, node._saved_padding
    if not hasattr(node, "_input_metadata"):
        sizes, kernels = node._saved_input.shape[2:], node._saved_weight.shape[2:]
        shapes = zip(sizes, kernels, strides, node._saved_dilation, strict=True)
        return any(max(stride, dilation * (kernel - 1) + 1) > size for size, kernel, stride, dilation in shapes)
    made = node._input_metadata[0].shape[2:]
    behind, number = node.next_functions[0]
    # Of an input without gradients it is known that it is no smaller than this.
    least = [(size - 1) * stride + 1 for size, stride in zip(made, strides, strict=True)]
    sizes = least if behind is None else behind._input_metadata[number].shape[2:]
    steps = zip(sizes, made, strides, pads, strict=True)
    return any(stride > size or 2 * pad > stride * (after - 1) for size, after, stride, pad in steps)


def _is_custom(function: Any) -> bool:
    """Whether an autograd.Function is not torch's."""
    home = function.__module__ or ""
    return home.partition(".")[0] != "torch" or home.startswith("torch._library")


def _has_custom_fwd(function: Any) -> bool:
    code = getattr(function.forward, "__code__", None)
    return code is not None and "autocast_mode" in code.co_filename
