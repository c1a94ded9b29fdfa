"""One model of a program in which settings may be turned on, and why a model is left alone."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..knobs._called import PLACE
from . import patches
from .call import Call, call_of
from .finding import ModelFinder, Seen
from .held import Attribute
from .models import family, key, unwrapped
from .nets.backward import rehearse
from .nets.compiling import Compiling
from .nets.kept_tensors import places
from .patches import Feature

SHARDED = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine", "DataParallel")
"""Wrappers that hold or exchange parameters in their own way. DistributedDataParallel is none of these."""
_patched: set[str] = set()
LEFT_OPTIMIZERS = ("LBFGS", "ZeroRedundancyOptimizer", "DeepSpeedZeroOptimizer")


class _Weak:
    """A field that does not keep its value alive, since what a setting needs to be turned off belongs to the model. It
    is None once the value is gone.
    """

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, root: Any, kind: Any = None) -> Any:
        if root is None:
            raise AttributeError(self._name)  # it has no default
        return vars(root)[self._name]()

    def __set__(self, root: Any, value: Any) -> None:
        vars(root)[self._name] = weakref.ref(value)


class _WeakList(_Weak):
    """The values that still exist."""

    def __get__(self, root: Any, kind: Any = None) -> Any:
        return () if root is None else [one for held in vars(root)[self._name] if (one := held()) is not None]

    def __set__(self, root: Any, value: Any) -> None:
        vars(root)[self._name] = list(map(weakref.ref, value))


@dataclass(kw_only=True)
class Root:
    """A model that the program calls from outside any other module."""

    model: Any = _Weak()
    seen: Seen
    device: str
    """The type of device that the choices were measured on."""
    gradients: bool = True
    """Whether its calls with gradients are meant, or those without, of a program that trains nothing."""
    optimizers: Any = _WeakList()
    """The optimizers that hold any of its parameters."""
    features: set[Feature] = field(default_factory=set)
    converted: bool = False
    """Whether its parameters were brought into channels_last before DistributedDataParallel wrapped it."""
    in_turn: bool = False
    """Whether settings are only tried, in turn, so that what comes before the wrap may be put in behind it."""
    compiled: dict[Any, Callable[..., Any]] = field(default_factory=dict)
    """The compiled call for each dtype of autocast, which is made once where settings are tried in turn."""
    failed: Callable[[str | Sequence[str], str], None] = lambda settings, why: None
    """Called where a setting that was put in fails later, or several."""
    say: Callable[[str], None] = lambda line: None
    """Called with what the program's user is to know."""

    @property
    def inner(self) -> Any:
        """The model itself, where `model` is a wrap that hands every call on to it."""
        # A DataParallel of one device replicates nothing.
        is_single = type(self.model).__name__ == "DataParallel" and len(self.model.device_ids) <= 1
        wraps = self.is_ddp or is_single
        return getattr(self.model, "module", self.model) if wraps else self.model  # a wrap in the making has none yet

    @property
    def is_ddp(self) -> bool:
        return is_ddp(self.model)

    @property
    def is_trained(self) -> bool:
        """Whether an optimizer holds any of its parameters, or the program trains nothing."""
        return bool(self.optimizers) or not self.gradients

    @property
    def name(self) -> str:
        return type(unwrapped(self.model)).__name__

    @property
    def family(self) -> str | None:
        return family(self.inner)

    @property
    def call(self) -> Call:
        return call_of(self.model, self.device)

    @property
    def inner_call(self) -> Call:
        return call_of(self.inner, self.device)

    @property
    def rehearse(self) -> Callable[[Any, Any], None] | None:
        """What tries a backward pass with the inputs and the output of a call, or None if none may be tried: hooks
        would be called, torch refuses to run reentrant checkpointing outside Tensor.backward, and another rank may not
        take part.
        """
        if (
            getattr(self.model, "static_graph", False)
            or not self.gradients
            or self.features & {"backward within backward", "hooks on activations", "collectives"}
        ):
            return None
        model, device = weakref.ref(self.inner), self.device
        return lambda given, output: rehearse(model(), given, output, device)

    def watch_compiling(self, make: Callable[..., Callable[..., Any]]) -> Compiling:
        """A compiled call that is watched. `make` takes the arguments `dynamic` and `goes_on`."""
        model: Callable[[], Any] = weakref.ref(self.inner)

        def uncompiled(*inputs: Any, **named: Any) -> Any:
            return model()._call_impl(*inputs, **named)

        return Compiling(
            lambda is_dynamic, goes_on: make(dynamic=is_dynamic or None, goes_on=goes_on),
            uncompiled,
            self.seen.signatures,
            say=lambda line: self.say(f"{self.name}: {line}"),
            failed=lambda why: self.refuse(["compile"], why),
            kind=(key(self.inner).identity, self.inner_call.dtype),
        )

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Turn off what a net has found to do harm."""
        for name in names:
            self.call.suspects.forget(name)
        self.failed(names, why)

    def leave_out_of_graphs(self, *names: str) -> None:
        """Turn everything off, or these settings, as the program is about to capture a CUDA graph."""
        if self.model is None:
            return
        on = [name for name in self.call.suspects.names if name in names or not names]
        if on := [name for name in on if not (self.is_ddp and name == "channels_last")]:
            self.refuse(on, "the program captures a CUDA graph, in which it cannot be turned off later")

    @property
    def kept(self) -> list[Attribute]:
        """Where calls of the model leave tensors, or may leave some later."""
        return list(dict.fromkeys((*self.seen.computed, *places(self.model))))

    def patch(self, name: str, *given: Any) -> None:
        """Make a patch of torch that concerns a setting that is turned on. It stays, as it does nothing for others."""
        if name not in _patched:
            _patched.add(name)
            getattr(patches, name)(*given)

    def claim(self) -> None:
        """Have the calls that are meant changed by what was put in, and no others."""
        for model in (self.model, self.inner):
            if isinstance(call := vars(model).get(PLACE), Call):
                call.gradients = self.gradients

    def left_alone(self) -> str | None:
        """Why no setting may be turned on in this model; None if settings may."""
        return self._wrapper() or self._optimizer() or self._parameters()

    def _wrapper(self) -> str | None:
        import torch

        if isinstance(self.model, torch.jit.ScriptModule):
            return f"{self.name} is compiled by torch.jit"
        kinds = {kind.__name__ for module in self.inner.modules() for kind in type(module).__mro__}
        sharding = kinds.intersection(SHARDED)
        return f"{min(sharding)} holds the parameters in its own way" if sharding else None

    def _optimizer(self) -> str | None:
        kinds = {kind.__name__ for optimizer in self.optimizers for kind in type(optimizer).__mro__}
        left = kinds.intersection(LEFT_OPTIMIZERS)
        return f"trained by {min(left)}" if left else None

    def _parameters(self) -> str | None:
        import torch

        parameters = list(self.model.parameters())
        if any(type(one).__name__ == "DTensor" for one in parameters):
            return "FSDP holds the parameters in its own way"
        tensors = [*parameters, *(buffer for buffer in self.model.buffers() if buffer.is_complex())]
        others = {one.dtype for one in tensors if one.is_floating_point() or one.is_complex()}
        if others := others - {torch.float32}:
            return f"its parameters are {', '.join(sorted(str(one).removeprefix('torch.') for one in others))}"
        devices = {one.device.type for one in parameters} - {self.device}
        return f"its parameters are on {min(devices)}, and this was measured on {self.device}" if devices else None


def found_roots(finder: ModelFinder, optimizers: Iterable[Any]) -> list[Root]:
    """The models that were seen and still exist; the finder forgets them. What is inside a model whose forward steps an
    optimizer may have been seen because of that step, after which the finder began.
    """
    found = [(model, seen) for seen in finder.seen.values() if (model := seen.model()) is not None]
    finder.seen.clear()
    inside = {one for model, seen in found if seen.trains for one in model.modules() if one is not model}
    return [root_of(finder, model, seen, optimizers) for model, seen in found if model not in inside]


def root_of(finder: ModelFinder, model: Any, seen: Seen, optimizers: Iterable[Any]) -> Root:
    own = {id(parameter) for parameter in model.parameters()}
    training = [one for one in optimizers if any(id(it) in own for group in one.param_groups for it in group["params"])]
    return Root(
        model=model, seen=seen, device=finder.device, gradients=finder.gradients, optimizers=training,
        features=finder.features,
    )  # fmt: skip


def is_ddp(model: Any) -> bool:
    return type(model).__name__ == "DistributedDataParallel"
