"""The call of one model, in the place that torch.nn.Module keeps for a compiled one: `_compiled_call_impl`.

An overridden `forward` would make copies of the model compute with the original's weights, and a hook would be saved
with it. This attribute belongs to the instance, and torch leaves it out of copies, pickles and checkpoints.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType
from typing import Any

from ..knobs._outputs import restored, tensors


def rewinder(model: Any, device: str) -> Callable[[], None]:
    """A function that puts torch's random states, and the model's buffers, back to what they are now."""
    import torch
    from torch.nn.parameter import is_lazy

    on_cpu, on_device = torch.get_rng_state(), torch.cuda.get_rng_state() if device == "cuda" else None
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers() if not is_lazy(buffer)]

    def rewind() -> None:
        torch.set_rng_state(on_cpu)
        if on_device is not None:
            torch.cuda.set_rng_state(on_device)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)

    return rewind


PLACE = "_compiled_call_impl"
FAULTS = (RuntimeError, TypeError, ValueError, AssertionError, LookupError)
"""The exceptions that torch, and a program's own checks, raise for a wrong dtype or layout. An exception derived
from Exception itself is a program's signal to itself."""
REWOUND = 2
"""After as many calls with the same settings, random states are no longer kept for a repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A setting that is on, and may make a call fail."""

    turn_off: Callable[[], object]
    turn_on: Callable[[], object]
    failed: Callable[[Exception], None]
    """Called with the exception that it raised, once it is off for good."""


class Call:
    """Calls a model in mixed precision, compiled, in inference mode, or several of these, wherever gradients are on, or
    off in a program that trains nothing; otherwise as it was.

    If a call fails, it is repeated without the suspects. If it fails again, the exception is the program's own, and
    they are turned on again. Otherwise each is turned on for a call of its own, which shows whether it was the cause.
    """

    def __init__(self, model: Any, device: str) -> None:
        self._model = _reference(model)
        self.device = device
        self.dtype: Any = None
        self.cache = True
        """Whether autocast may keep a weight's cast for its next use in the same call."""
        self.users: Callable[..., Any] | None = vars(model).get(PLACE)
        """The program's own compiled call of the model, which stays."""
        self.compiled: Callable[..., Any] | None = None
        self.channels_last = False
        self.gradients = True
        """Whether calls with gradients are changed, or else those without."""
        self.around: Callable[[Callable[[], Any]], Any] | None = None
        """Makes the call that it is given, and returns what is to be returned."""
        self._suspects: list[Suspect] = []
        self._outside: list[Suspect] = []
        """Suspects that are off, to be turned on one for each call."""
        self._rewound = REWOUND
        self.raised: Callable[[Exception], None] | None = None
        """Called with what a call raises, before the program sees it. Only in a program that is being tuned."""
        self.instead: Callable[[Any, Any], Any] | None = None
        """Called with the positional and the named inputs instead. Only in a program that is being tuned."""

    def suspect(self, one: Suspect) -> None:
        self._suspects.append(one)
        self._rewound = REWOUND

    def clear(self) -> None:
        """Suspect nothing any more, as the owner of the settings turns them off."""
        self._suspects, self._outside = [], []

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        import torch

        model: Any = self._model()
        call = self.users or model._call_impl
        if torch.compiler.is_compiling() or torch._C._get_tracing_state():
            return call(*inputs, **named)
        if torch.is_grad_enabled() != self.gradients:  # the weights' layout holds there, too
            output = call(*inputs, **named)
            return restored(output, None, contiguous=True) if self.channels_last else output
        if self.instead:
            return self.instead(inputs, named)
        if self._suspects or self._outside:
            return self._protected(call, inputs, named)
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

        # Inputs get gradients as a rule for a second derivative, which torch.compile does not support.
        if self.compiled and not any(one.requires_grad and one.is_leaf for one in tensors((inputs, named))):
            call = self.compiled
        if self.dtype is None or torch.is_autocast_enabled(self.device):
            output = call(*inputs, **named)
            return restored(output, None, contiguous=True) if self.channels_last else output
        context = torch.autocast(self.device, dtype=self.dtype, cache_enabled=self.cache)
        context.by_gputune = True  # `patches.feature_used` looks for the program's own
        with context:
            output = call(*inputs, **named)
        return restored(output, self.dtype, self.channels_last)

    def _protected(self, call: Any, inputs: Any, named: Any) -> Any:
        import torch

        suspected = self._suspected()
        rewind = rewinder(self._model(), self.device) if self._rewound else None
        self._rewound = max(0, self._rewound - 1)
        try:
            return self._run(call, inputs, named)
        except torch.cuda.OutOfMemoryError:
            raise
        except FAULTS as error:
            fault = error
        # Out of the except clause, so that an exception of the program's own shows no other one before it.
        if rewind is not None:
            rewind()
        for one in suspected:
            one.turn_off()
        try:
            output = self._run(call, inputs, named)
        except BaseException:
            for one in suspected:
                one.turn_on()
            raise
        self._suspects = [one for one in self._suspects if one not in suspected]
        if len(suspected) == 1:
            suspected[0].failed(fault)
        else:
            self._outside += suspected
        return output

    def _suspected(self) -> list[Suspect]:
        """The settings to turn off if this call fails: all that are on, or the one that is turned on for this call."""
        if not self._outside:
            return list(self._suspects)
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
    return call
