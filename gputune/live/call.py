"""The call of one model, in the place that torch.nn.Module keeps for a compiled one: `_compiled_call_impl`.

An overridden `forward` would make copies of the model compute with the original's weights, and a hook would be saved
with it. This attribute belongs to the instance, and torch leaves it out of copies, pickles and checkpoints. A copy that
a program makes of all attributes has it, though; so each call asks whom it is for.
"""

import weakref
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from types import NoneType
from typing import Any

from ..knobs._called import PLACE, called, is_transformed, saves_through_hooks
from ..knobs._line_search import running as line_searches
from ..knobs._outputs import Known, Uncopied, entering, restored, tensors
from .faults import may_be_a_settings, may_be_another_uncompiled
from .held import Attribute, restore
from .patches import module_registered, scripted
from .states import States


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A setting that is on, and may make a call fail."""

    name: str
    turn_off: Callable[[], object]
    turn_on: Callable[[], object]
    failed: Callable[[Exception, str | None], None]
    """Called once it is off for good, with the exception that it raised and why that call could not be made again."""


class Call:
    """Calls a model in mixed precision, compiled, in inference mode, or several of these, wherever gradients are on, or
    off in a program that trains nothing; otherwise as it was, but for channels_last, in which the weights are.

    If a call fails as a setting may make it fail (`faults`), everything is put back as it was (`states`), and the call
    is repeated without the suspects. If it fails again, the exception is the program's own, and they are turned on
    again. Otherwise each is turned on for a call of its own, which shows whether it was the cause. If not everything
    can be put back, the program sees the exception, or the output that could not be copied, and the suspects are off
    from then on.

    A compiled call raises other exceptions than a plain one, and skips what a forward does about its own. So what
    torch's code raises in it has the call repeated uncompiled, which counts; it stays compiled for the next.
    """

    def __init__(self, model: Any, device: str) -> None:
        self._model = _reference(model)
        self.device = device
        self.dtype: Any = None
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
        self._suspects: list[Suspect] = []
        self._outside: list[Suspect] = []
        """Suspects that are off, to be turned on one for each call."""
        self._states = States(self._model, device)
        self._states_otherwise = States(self._model, device)
        """The states around calls that the settings leave as they are."""
        self._weights: list[tuple[dict[str, Any], str]] = []
        """Where the first and the last weight stand."""
        self.raised: Callable[[Exception], None] | None = None
        """Called with what a call raises, before the program sees it. Only in a program that is being tuned."""
        self.instead: Callable[[Any, Any], Any] | None = None
        """Called with the positional and the named inputs instead. Only in a program that is being tuned."""

    @property
    def model(self) -> Any:
        return self._model()

    def suspect(self, one: Suspect) -> None:
        self._suspects.append(one)
        self._states.begin_again()
        self._states_otherwise.begin_again()

    def clear(self) -> None:
        """Suspect nothing any more, as the owner of the settings turns them off."""
        self._suspects, self._outside = [], []

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
        if (self.channels_last and self._suspects) if otherwise else (self._suspects or self._outside):
            return self._protected(call, inputs, named, otherwise, self._suspected(otherwise))
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
        context = torch.autocast(self.device, dtype=self.dtype, cache_enabled=self.cache)
        context.by_gputune = True  # `patches.feature_used` looks for the program's own
        with context:
            output = call(*inputs, **named)
        seen = restored(output, self.dtype, (inputs, named) if self.channels_last else None, known)
        restore(self.computed, self.dtype, known)
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

    def _protected(self, call: Any, inputs: Any, named: Any, otherwise: bool, suspected: list[Suspect]) -> Any:
        run, states = (self._in_fp32, self._states_otherwise) if otherwise else (self._run, self._states)
        compiled = self.compiled and not self._uncompiled and not otherwise
        before = states.before_call((*inputs, *named.values()))
        try:
            output = run(call, inputs, named)
        except Exception as error:
            is_settings = may_be_a_settings(error, [one.name for one in suspected])
            if not is_settings and not (compiled and may_be_another_uncompiled(error)):
                raise
            suspected = self._to_blame(error, suspected)
            if why := states.put_back(before):
                if is_settings:
                    return self._given_up(suspected, error, why)
                raise
            fault = error
        else:
            states.after_call(before)
            return output
        # Out of the except clause, so that an exception of the program's own shows no other one before it.
        if is_settings:
            return self._repeated(partial(run, call, inputs, named), suspected, fault)
        self._uncompiled = True
        try:
            return self._protected(call, inputs, named, otherwise, suspected)
        finally:
            self._uncompiled = False

    def _repeated(self, run: Callable[[], Any], suspected: list[Suspect], fault: Exception) -> Any:
        for one in suspected:
            one.turn_off()
        try:
            output = run()
        except BaseException:
            for one in suspected:
                one.turn_on()
            raise
        if len(suspected) == 1:
            self._turn_off(suspected, fault)
        else:
            self._suspects = [one for one in self._suspects if one not in suspected]
            self._outside += suspected
        return output

    def _to_blame(self, fault: Exception, suspected: list[Suspect]) -> list[Suspect]:
        """The setting alone that needs a copy of an output, if that cannot be copied."""
        needs = fault.setting if isinstance(fault, Uncopied) else None
        return [one for one in self._suspects if one.name == needs] or suspected

    def _given_up(self, suspected: list[Suspect], fault: Exception, why: str) -> Any:
        self._turn_off(suspected, fault, why)
        if isinstance(fault, Uncopied):
            return fault.output
        raise fault

    def _turn_off(self, suspected: list[Suspect], fault: Exception, why: str | None = None) -> None:
        self._suspects = [one for one in self._suspects if one not in suspected]
        for one in suspected:
            one.turn_off()
            one.failed(fault, why)

    def _suspected(self, otherwise: bool) -> list[Suspect]:
        """The settings to turn off if this call fails: all that are on, or the one that is turned on for this call."""
        if otherwise:
            return [one for one in self._suspects if one.name == "channels_last"]
        if not self._outside:
            return self._suspects
        one = self._outside.pop(0)
        one.turn_on()
        self.suspect(one)
        return [one]


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
