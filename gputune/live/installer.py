"""Turns settings on and off in a program's models and in torch's flags, once or back and forth."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import knobs
from ..knobs import Value, in_order
from ..knobs._signals import is_for_the_program
from .advice import Values
from .applied import Applied, Reason, Why
from .faults import innermost, is_out_of_memory, may_be_a_settings
from .flags import error_text, failed, left_alone
from .outcome import left, obstacle
from .root import Root
from .suspects import Suspect

SetFlag = Callable[[str, Value], Applied]


def usual_mode() -> Any:
    """Outside of torch's inference mode, in which a program may be and nothing that lasts can be made."""
    import torch

    return torch.inference_mode(False)


class Installer:
    """The settings in force in the models `roots` and in torch's flags; at first none.

    `set_flag` sets a flag and returns its row; by default a flag is set whatever it was. If it is `guarded`, what fails
    becomes a row, and what makes a model's call fail is turned off again (`suspects.Suspect`). If not, it raises.
    """

    def __init__(self, roots: Sequence[Root] = (), set_flag: SetFlag | None = None, *, guarded: bool = False) -> None:
        self.roots = list(roots)
        self.current: dict[str, Value] = {}
        self._set_flag, self._guarded = set_flag or _set_flag, guarded
        self._kept = [] if guarded else [(root.model, root.optimizers) for root in self.roots]
        """Models and optimizers that a run of a tune holds: it still switches settings in what the program dropped."""
        self._able: dict[str, list[Root]] = {}
        """By setting, the models that nothing stands in the way of."""
        self._before: dict[str, Value] = {}
        """By flag, what it was before."""

    def obstacles(self, candidates: Values) -> dict[str, Applied]:
        """By setting, why it cannot be turned on in any model. Only what was asked for here is turned on in models."""
        rows = {name: self._obstacle(name, value) for name, value in candidates.items()}
        return {name: row for name, row in rows.items() if row is not None}

    def switch(self, values: Values) -> dict[str, Applied]:
        """Have exactly these settings in force. Returns a row for each setting that was to be turned on. If it raises,
        none is in force.
        """
        with usual_mode():
            try:
                return self._switch(values)
            except BaseException:
                self._turn_off_all(self.current)
                self.current = {}
                raise

    def watch(self, raised: Callable[[Exception], None]) -> None:
        """Have `raised` called with what a model's call raises because of what is in force, as far as that shows in the
        exception. What the call raised in the same place with nothing in force is the program's own.
        """
        own: set[Any] = set()

        def with_settings(error: Exception) -> None:
            trace = innermost(error)
            place = trace and (trace.tb_frame.f_code, trace.tb_lasti)
            if not self.current:
                own.add(place)
                return
            in_calls = [name for name in self.current if knobs.load(name).PHASE == "code" and knobs.load(name).IN_CALLS]
            if place not in own and (is_out_of_memory(error) or may_be_a_settings(error, in_calls)):
                raised(error)

        for root in self.roots:
            root.call.raised = with_settings
            root.claim()

    def _switch(self, values: Values) -> dict[str, Applied]:
        other_precision = self.current.get("amp_dtype") != values.get("amp_dtype")
        self._turn_off_all(self.current.keys() - values.keys())
        kept = {name: value for name, value in self.current.items() if name in values and values[name] == value}
        if other_precision:  # in which the compiled call is another one
            kept.pop("compile", None)
        rows = {}
        for name in in_order(values.keys() - kept.keys()):
            self.current[name] = values[name]  # so that it is turned off if turning it on is interrupted
            rows[name] = self._turn_on(name, values[name])
        self.current = kept | {name: values[name] for name, row in rows.items() if row.status == "applied"}
        return rows

    def _obstacle(self, name: str, value: Value) -> Applied | None:
        knob = knobs.load(name)
        if knob.PHASE != "code":
            default = knobs.default_of(knob)
            return self._flags_obstacle(name, value) or left_alone(knob, value, knob.current(), default, default)
        if name not in self._able:
            rows = [self._obstacle_in(root, name, value) for root in self.roots]
            if None not in rows:
                return next(iter(rows), left(name, Reason.NO_MODEL()))
            self._able[name] = [root for root, row in zip(self.roots, rows, strict=True) if row is None]
        return None

    def _flags_obstacle(self, name: str, value: Value) -> Applied | None:
        found = getattr(knobs.load(name), "obstacle", lambda root, value: None)
        return next((left(name, why.why) for root in self.roots if (why := found(root, value))), None)

    def _obstacle_in(self, root: Root, name: str, value: Value) -> Applied | None:
        if alone := root.left_alone():
            return left(name, alone)
        try:
            return obstacle(root, name, value)
        except Exception as error:
            return self._failed(name, error)

    def _turn_on(self, name: str, value: Value) -> Applied:
        if knobs.load(name).PHASE != "code":
            return self._flags_obstacle(name, value) or self._set(name, value)
        roots, put = self._able.get(name, []), value
        if not roots:
            return left(name, Reason.NO_MODEL())
        try:
            for root in roots:
                put = self._turn_on_in(root, name, value)
        except Exception as error:
            return self._failed(name, error)
        if self._guarded and knobs.load(name).IN_CALLS:
            for root in roots:
                self._suspect(root, name, value)
        reasons: tuple[Why | str, ...] = (Reason.PUT_IN(*[root.name for root in roots]),)
        if put != value and value is not True:
            reasons += ("bfloat16 instead of float16, which needs a loss scaler",)
        return Applied(setting=name, after=put, status="applied", source="profile", reasons=reasons)

    def _set(self, name: str, value: Value) -> Applied:
        row = self._set_flag(name, value)
        self._before.setdefault(name, row.before)
        return row

    def _turn_off_all(self, names: Iterable[str]) -> None:
        for name in reversed(in_order(names)):
            self._turn_off(name)

    def _turn_off(self, name: str) -> None:
        if name in self._before:
            self._set_flag(name, self._before[name])
        for root in self._able.get(name, ()):
            if root.model is None:  # the program has deleted it
                continue
            if self._guarded:
                root.call.suspects.clear()
            self._turn_off_in(root, name)

    def _turn_on_in(self, root: Root, name: str, value: Value) -> Value:
        with usual_mode():
            put = knobs.load(name).turn_on(root, value)
        root.claim()
        return put

    def _turn_off_in(self, root: Root, name: str) -> None:
        with usual_mode():
            knobs.load(name).turn_off(root)

    def _suspect(self, root: Root, name: str, value: Value) -> None:
        root.call.suspects.add(
            Suspect(
                name=name,
                turn_off=lambda: self._turn_off_in(root, name),
                turn_on=lambda: self._turn_on_in(root, name, value),
                failed=lambda error, why: root.failed(name, _call_failed(error, why)),
            )
        )

    def _failed(self, name: str, error: Exception) -> Applied:
        if not self._guarded or is_for_the_program(error):
            raise error
        return failed(name, error_text(error))


def _call_failed(error: Exception, why: str | None) -> str:
    words = f"its call failed with it: {error_text(error)}"
    return f"{words} (the call could not be repeated: {why})" if why else words


def _set_flag(name: str, value: Value) -> Applied:
    knob = knobs.load(name)
    before = knob.current()
    knob.apply(value)
    return Applied(setting=name, before=before, after=value, status="applied", source="profile", reasons=("switched",))
