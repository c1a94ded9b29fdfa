"""The call of one model, in the place that torch.nn.Module keeps for a compiled one: `_compiled_call_impl`.

An overridden `forward` would make copies of the model compute with the original's weights, and a hook would be saved
with it. This attribute belongs to the instance, and torch leaves it out of copies, pickles and checkpoints. A copy that
a program makes of all attributes has it, though; so each call asks whom it is for.
"""

import weakref
from collections.abc import Callable, Collection
from functools import cache
from types import NoneType
from typing import Any

from ..knobs._called import PLACE, called, is_transformed, saves_through_hooks
from ..knobs._line_search import running as line_searches
from ..knobs._outputs import Known, tensors
from ..knobs._restored import entering, restored
from .held import Attribute, restore
from .patches import module_registered, scripted
from .suspects import OneCall, Suspects


class Call:
    """Calls a model in mixed precision, compiled, in inference mode, or several of these, wherever gradients are on, or
    off in a program that trains nothing; otherwise as it was, but for channels_last, in which the weights are.
    """

    def __init__(self, model: Any, device: str) -> None:
        self._model = _reference(model)
        self.device = device
        self.dtype: Any = None
        self.is_cast = False
        """Whether a call in mixed precision runs."""
        self.computed: Collection[Attribute] = ()
        """Where its calls leave tensors, which are in FP32 for the program."""
        self.cache = True
        """Whether autocast may keep a weight's cast for its next use in the same call."""
        self.users: Callable[..., Any] | None = vars(model).get(PLACE)
        """The program's own compiled call of the model, which stays."""
        self.compiled: Callable[..., Any] | None = None
        self._uncompiled = False
        """Whether the call that runs is one that failed compiled."""
        self.channels_last = False
        self.gradients = True
        """Whether calls with gradients are changed, or else those without."""
        self.around: Callable[[Callable[[], Any]], Any] | None = None
        """Makes the call that it is given, and returns what is to be returned."""
        self.suspects = Suspects(self._model, device)
        self._weights: list[tuple[dict[str, Any], str]] = []
        """Where the first and the last weight stand."""
        self.raised: Callable[[Exception], None] | None = None
        """Called with what a call raises, before the program sees it. Only in a program that is being tuned."""
        self.instead: Callable[[Any, Any], Any] | None = None
        """Called with the positional and the named inputs instead. Only in a program that is being tuned."""

    @property
    def model(self) -> Any:
        return self._model()

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        import torch

        model: Any = self._model()
        # torch.compile cannot trace frames. It sees no other instance: `_patch`.
        other = None if torch.compiler.is_dynamo_compiling() else called()
        if other is not None and other is not model:
            return (self.users or other._call_impl)(*inputs, **named)
        call = self.users or model._call_impl
        if torch.compiler.is_compiling() or torch._C._get_tracing_state():
            return call(*inputs, **named)
        otherwise = torch.is_grad_enabled() != self.gradients or is_transformed()
        if self.instead and not otherwise:
            return self.instead(inputs, named)
        if (self.channels_last and self.suspects.on) if otherwise else self.suspects:
            return self._protected(call, inputs, named, otherwise)
        if otherwise:
            return self._in_fp32(call, inputs, named)
        try:
            return self._run(call, inputs, named)
        except Exception as error:
            if self.raised:
                self.raised(error)
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy and a pickle hold None instead, also where a model's own `__getstate__` saves all its attributes."""
        return (NoneType, ())

    def _protected(self, call: Any, inputs: Any, named: Any, otherwise: bool) -> Any:
        def run(*given: Any, **more: Any) -> Any:
            return (self._in_fp32 if otherwise else self._run)(call, given, more)

        def uncompiled(*given: Any, **more: Any) -> Any:
            self._uncompiled = True
            try:
                return run(*given, **more)
            finally:
                self._uncompiled = False

        instead = uncompiled if self.compiled and not otherwise else None
        one = OneCall(run=run, uncompiled=instead, inputs=inputs, named=named, otherwise=otherwise)
        return self.suspects.call(one)

    def run(self, inputs: Any, named: Any, inner: Any = None) -> Any:
        """Make the call as it is now, without regard to suspects; of the model inside a wrap, if that is given."""
        return self._run(inner or self.users or self.model._call_impl, inputs, named)

    def _run(self, call: Any, inputs: Any, named: Any) -> Any:
        if self.around is not None:
            return self.around(lambda: self._cast(call, inputs, named))
        return self._cast(call, inputs, named)

    def _cast(self, call: Any, inputs: Any, named: Any) -> Any:
        import torch

        casts = (
            self.dtype is not None
            and not line_searches
            and self._is_in_float32()
            and not torch.is_autocast_enabled(self.device)  # the program's own, whose outputs stay as they are
            and not any(one.dtype in (torch.float16, torch.bfloat16) for one in tensors((inputs, named)))
        )
        # Inputs get gradients as a rule for a second derivative, which torch.compile does not support.
        if (
            self.compiled
            and not self._uncompiled
            and casts == (self.dtype is not None)
            and not any(one.requires_grad and one.is_leaf for one in tensors((inputs, named)))
            and not saves_through_hooks()
        ):
            call = self.compiled
        if not casts:
            return self._in_fp32(call, inputs, named)
        known: Known = {}
        if self.channels_last:
            inputs, named = entering(inputs, named, known)
        dtype = self.dtype  # which a net may turn off meanwhile
        context = torch.autocast(self.device, dtype=dtype, cache_enabled=self.cache)
        context.by_gputune = True  # `patches.feature_used` looks for the program's own
        self.is_cast = True
        try:
            with context:
                output = call(*inputs, **named)
        finally:
            self.is_cast = False
        seen = restored(output, dtype, (inputs, named) if self.channels_last else None, known)
        restore(self.computed, dtype, known)
        return seen

    def _in_fp32(self, call: Any, inputs: Any, named: Any) -> Any:
        if not self.channels_last:
            return call(*inputs, **named)
        known: Known = {}
        inputs, named = entering(inputs, named, known)
        return restored(call(*inputs, **named), None, (inputs, named), known)

    def _is_in_float32(self) -> bool:
        """Whether the weights are still what they were: a program may call `model.bfloat16()` at any time. The first
        and the last of them are looked at where they stand, since other tensors may take their places.
        """
        import torch

        try:
            # A comprehension rather than a generator, which takes twice as long.
            dtypes = [holder[name].dtype for holder, name in self._weights or self._find_weights()]
        except (KeyError, AttributeError):  # it is a weight no more
            dtypes = [holder[name].dtype for holder, name in self._find_weights()]
        return dtypes.count(torch.float32) == len(dtypes)

    def _find_weights(self) -> list[tuple[dict[str, Any], str]]:
        found = [
            (module._parameters, name)
            for module in self._model().modules()
            for name, one in module._parameters.items()
            if one is not None and one.is_floating_point()
        ]
        self._weights = found[:: max(1, len(found) - 1)]
        return self._weights


def _reference(model: Any) -> Callable[[], Any]:
    """Gives the model, kept alive only with torch 2.4, whose compiler cannot trace a weak reference."""
    import torch

    return (lambda: model) if torch.__version__.startswith("2.4.") else weakref.ref(model)


def call_of(model: Any, device: str) -> Call:
    """The model's Call, which is put into its place if it has none yet.

    The place is that of the instance itself: what torch.compile returns hands attributes on to the model inside it.
    """
    call = vars(model).get(PLACE)
    if not isinstance(call, Call):
        call = vars(model)[PLACE] = Call(model, device)
        _patch()
    return call


@cache
def _patch() -> None:
    """Have a copy of all attributes of a model lose the model's Call as it becomes part of another module, as of what
    torch.compile returns: compiling would trace the Call as the original's; and torch.jit.script pass the Call over.
    """

    def registered(outer: Any, name: str, module: Any) -> None:
        call = getattr(module, "__dict__", {}).get(PLACE)
        if isinstance(call, Call) and call.model is not module:
            vars(module).pop(PLACE)
            if call.users:
                vars(module)[PLACE] = call.users

    module_registered(registered)
    scripted(PLACE)
