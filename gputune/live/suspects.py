"""The settings that may make a model's call fail: which of them is to blame, and what is done about it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..knobs._outputs import Uncopied
from ..knobs._signals import is_for_the_program
from .before import Before
from .faults import may_be_a_settings, may_be_another_uncompiled
from .nets.gradients import GradientsDiffer, Requirements
from .states import States


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A setting that is on, and may make a call fail."""

    name: str
    turn_off: Callable[[], object]
    turn_on: Callable[[], object]
    failed: Callable[[Exception, str | None], None]
    """Called once it is off for good, with the exception that it raised and why that call could not be made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCall:
    """One call of a model."""

    run: Callable[..., Any]
    uncompiled: Callable[..., Any] | None
    """Makes it uncompiled where `run` makes it compiled."""
    inputs: Sequence[Any]
    named: dict[str, Any]
    otherwise: bool
    """Whether settings leave it as it is, but for channels_last."""

    def __call__(self) -> Any:
        return self.run(*self.inputs, **self.named)


class Net:
    """Looks at each call, until it is removed from `Suspects.nets`. A subclass overrides what it hears of."""

    def calling(self, one: OneCall) -> None:
        """A call is about to be made, and settings may be turned off."""

    def called(self, one: OneCall, before: Before | None, output: Any) -> None:
        """A call that settings change returned. `before` is what it may have changed, as it was. If this raises what
        `faults` takes for a setting's, the call is made again without the suspects.
        """


class Suspects:
    """If a call fails as a setting may make it fail (`faults`), everything is put back as it was (`states`), and the
    call is repeated without the suspects. If it fails again, the exception is the program's own, and they are turned on
    again. Otherwise each is turned on for a call of its own, which shows whether it was the cause. If not everything
    can be put back, the program sees the exception, or the output that it concerns, and the suspects are off from then
    on.

    A compiled call raises other exceptions than a plain one, and skips what a forward does about its own. So what
    torch's code raises in it has the call repeated uncompiled, which counts; it stays compiled for the next.
    """

    def __init__(self, model: Callable[[], Any], device: str) -> None:
        self.on: list[Suspect] = []
        self._outside: list[Suspect] = []
        """Those that are off, to be turned on one for each call."""
        self._states = States(model, device)
        self._states_otherwise = States(model, device)
        """The states around calls that the settings leave as they are."""
        self.requirements = Requirements()
        self.nets: list[Net] = []
        self.fixed: set[str] = set()
        """What is not turned off and on again: a layout that DistributedDataParallel or the compiler has looked at."""
        self._paused: list[Suspect] = []

    def __bool__(self) -> bool:
        return bool(self.on or self._outside)

    @property
    def names(self) -> list[str]:
        """Those of the settings that are on, or on trial."""
        return [one.name for one in (*self.on, *self._outside)]

    @property
    def are_settled(self) -> bool:
        """Whether none is on trial."""
        return not self._outside and not self._paused

    def add(self, one: Suspect) -> None:
        self.on.append(one)
        self._states.begin_again()
        self._states_otherwise.begin_again()

    def clear(self) -> None:
        """Suspect nothing any more, as the owner of the settings turns them off."""
        self.on, self._outside = [], []

    def forget(self, name: str) -> None:
        """Turn a setting off that a net has refused. What is turned on after it is turned on anew without it."""
        names = [one.name for one in self.on]
        later = self.on[names.index(name) + 1 :] if name in names else []
        found = [one for one in (*self.on, *self._outside) if one.name == name]
        self.on = [one for one in self.on if one not in found]
        self._outside = [one for one in self._outside if one not in found]
        for one in (*reversed(later), *found):
            one.turn_off()
        for one in later:
            one.turn_on()

    def pause(self, names: Collection[str] | None = None) -> None:
        """Turn all off that can be turned on again at any time, or those of these names, until `go_on`."""
        self._paused = [one for one in self._switched if names is None or one.name in names]
        for one in reversed(self._paused):
            one.turn_off()

    def go_on(self) -> None:
        for one in [one for one in self._paused if one in self.on]:
            one.turn_on()
        self._paused = []

    @property
    def _switched(self) -> list[Suspect]:
        return [one for one in self.on if one.name not in self.fixed]

    @contextmanager
    def only(self, names: Collection[str]) -> Iterator[None]:
        """Have these alone on, while all are turned off."""
        own = [one for one in self._switched if one.name in names]
        for one in own:
            one.turn_on()
        try:
            yield
        finally:
            for one in reversed(own):
                one.turn_off()

    def keep_everything(self) -> None:
        """Keep everything that the next calls change."""
        self._states.begin_again()

    def turn_off(self, suspected: Sequence[Suspect], fault: Exception, why: str | None = None) -> None:
        """Turn off for good. `why` is why the call that failed could not be made again."""
        self.on = [one for one in self.on if one not in suspected]
        for one in suspected:
            one.turn_off()
            one.failed(fault, why)

    def call(self, one: OneCall) -> Any:
        if not self._paused:
            self._ask_nets(lambda net: net.calling(one))
        return self._call(one, self._suspected(one.otherwise))

    def _call(self, one: OneCall, suspected: list[Suspect]) -> Any:
        states = self._states_otherwise if one.otherwise else self._states
        before = states.before_call((*one.inputs, *one.named.values()))
        try:
            output = one()
            if not one.otherwise and not self._paused:
                self.requirements.look(output)
                self._ask_nets(lambda net: net.called(one, before, output))
        except Exception as error:
            again = self._again(one, suspected, error, lambda: states.put_back(before))
        else:
            states.after_call(before)
            return output
        # Out of the except clause, so that an exception of the program's own shows no other one before it.
        return again()

    def _again(
        self, one: OneCall, suspected: list[Suspect], error: Exception, put_back: Callable[[], str | None]
    ) -> Callable[[], Any]:
        """What makes a call again that raised. Raises what it raised, within the except clause, if that is the
        program's own or if the call cannot be made again.
        """
        is_settings = may_be_a_settings(error, [suspect.name for suspect in suspected])
        if not is_settings and not (one.uncompiled and may_be_another_uncompiled(error)):
            raise error
        still_on = [suspect for suspect in suspected if suspect in self.on]  # others a net has refused meanwhile
        to_blame = self._to_blame(error, still_on)
        if why := put_back():
            if is_settings:
                return partial(self._given_up, to_blame, error, why)
            raise error
        if len(still_on) < len(suspected):
            return partial(self._call, one, still_on)
        if is_settings or one.uncompiled is None:
            return partial(self._repeated, one, to_blame, error)
        return partial(self._call, replace(one, run=one.uncompiled, uncompiled=None), suspected)

    def _ask_nets(self, ask: Callable[[Net], None]) -> None:
        for net in tuple(self.nets):
            try:
                ask(net)
            except Exception as error:
                if may_be_a_settings(error, ()) or is_for_the_program(error):
                    raise
                self.nets = [other for other in self.nets if other is not net]  # which fails the program in no case

    def _repeated(self, call: OneCall, suspected: list[Suspect], fault: Exception) -> Any:
        for one in suspected:
            one.turn_off()
        try:
            output = call()
        except BaseException:
            for one in suspected:
                one.turn_on()
            raise
        if isinstance(fault, GradientsDiffer) and self.requirements.are_as(fault.output, output):
            for one in suspected:  # they differ without settings, too
                one.turn_on()
        elif len(suspected) == 1:
            self.turn_off(suspected, fault)
        else:
            self.on = [one for one in self.on if one not in suspected]
            self._outside += suspected
        return output

    def _to_blame(self, fault: Exception, suspected: list[Suspect]) -> list[Suspect]:
        """The setting alone that a fault names, if it is on."""
        named = getattr(fault, "setting", None)
        return [one for one in self.on if one.name == named] or suspected

    def _given_up(self, suspected: list[Suspect], fault: Exception, why: str) -> Any:
        self.turn_off(suspected, fault, why)
        if isinstance(fault, Uncopied | GradientsDiffer):
            return fault.output
        raise fault

    def _suspected(self, otherwise: bool) -> list[Suspect]:
        """The settings to turn off if this call fails: all that are on, or the one that is turned on for this call."""
        if otherwise:
            return [one for one in self.on if one.name == "channels_last"]
        if not self._outside or self._paused:
            return self.on
        one = self._outside.pop(0)
        one.turn_on()
        self.add(one)
        return [one]
