"""Torch's flags, and the settings of variables, in this process: set, read back and remembered."""

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

from .. import knobs
from ..knobs import Knob, Value, name_of
from .applied import Applied, Reason, Source, Status, Why, is_one

rows: dict[str, Applied] = {}
"""The latest row of each setting that was to be applied in this process, by name."""
_ours: dict[str, Value] = {}
"""The values that gputune set, by setting: other than torch's default, and yet not the user's choice."""
_aside: dict[str, tuple[Value, str]] = {}
"""The flags of gputune's that are at torch's default for a while: by setting, the value that returns, and why."""


def set_at_start(name: str, value: Value, measured: str | None) -> Applied:
    """Set a flag right after `import torch`, or read back a setting that was exported. `measured` is the version of
    torch that the value was measured with, if it depends on that.
    """
    try:
        knob = knobs.load(name)
    except KeyError:
        return _unknown(name)
    torch = str(sys.modules["torch"].__version__)
    if measured not in (None, torch) and "torch" in knob.DEPENDS:
        return _remembered(skipped(knob, f"measured with torch {measured}, but this is torch {torch}"))
    if knob.PHASE != "launch":
        return _set(knob, value, "right after import torch")
    try:
        return _remembered(_in_rank(knob, value) or read_back(knob, value, knob.current()))
    except Exception as error:
        return _remembered(failed(name, error_text(error)))


def _in_rank(knob: Knob, value: Value) -> Applied | None:
    """The row of a setting of which each rank has its share of the CPUs, which is set here; None for any other."""
    cpus = knob.cpus_of_rank() if hasattr(knob, "cpus_of_rank") else None
    if cpus is None:
        return None
    before = knob.current()
    users = exported(knob, value, os.environ, {name: str(value) for name in knob.NAMES})
    if users and users.status == "kept-user":
        return replace(users, before=before, after=before)
    if before <= cpus:
        return row_of(knob, "applied", "torch", f"within the {cpus} CPUs of this process", before)
    knob.apply(cpus)
    return after_apply(knob, cpus, before, knob.current(), "its share of the CPUs, right after import torch")


def set_now(name: str, value: Value) -> Applied:
    try:
        knob = knobs.load(name)
    except KeyError:
        return _unknown(name)
    late = ", too late for its environment variable" if knob.PHASE == "launch" else ""
    return _set(knob, value, f"in this process{late}")


def set_for_program(name: str, value: Value, ours: Mapping[str, str]) -> Applied:
    """Set one value that was tuned for this program. `ours` are the variables that gputune exported."""
    knob = knobs.load(name)
    row = exported(knob, value, os.environ, ours) if knob.PHASE == "launch" else None
    return _remembered(replace(row, after=knob.current())) if row else _set(knob, value, "in this process")


def rows_now() -> list[Applied]:
    """The rows as they are now: `changed-later` if the program has set something else since."""
    found = list[Applied]()
    for name, row in rows.items():
        now = as_now(row, partial(_in_force, name), is_the_programs(name))
        _, why = _aside.get(name, (None, ""))
        found.append(now.and_because(why) if why and now.status == "applied" else now)
    return found


def is_the_programs(name: str) -> bool:
    """Whether the program has set a flag since gputune did, perhaps to the same value."""
    return bool(name in _ours and _later() and _later().is_the_programs(name))


def is_ours(name: str, value: Value) -> bool:
    """Whether gputune has set a flag to this value, as far as the program has not set it since."""
    return _ours.get(name) == value and not is_the_programs(name)


def set_back(name: str, why: str) -> bool:
    """Set a flag of gputune's back to what it was before, and have its row say why. Returns whether it was in force."""
    knob = knobs.load(name)
    if hasattr(knob, "undoing"):
        if not (_later() and _later().set_back(name)):
            return False
    elif _ours.get(name) != _in_force(name):
        return False
    else:
        knob.apply(knob.DEFAULT)
    _ours.pop(name, None)
    _aside.pop(name, None)
    rows[name] = row_of(knob, "skipped", "torch", why, _current(name))
    return True


@contextmanager
def without(names: Collection[str], why: str = "") -> Iterator[None]:
    """Have flags that gputune has set be torch's defaults meanwhile, but for those that could not be set again. Their
    rows say `why`.
    """
    ours = {name: _ours[name] for name in names if name in _ours and is_ours(name, _current(name))}
    ours = {name: value for name, value in ours.items() if _may_be_set(name, value)}
    for name, value in ours.items():
        knobs.load(name).apply(knobs.load(name).DEFAULT)
        _aside[name] = value, why
    try:
        yield
    finally:
        for name, value in ours.items():
            _aside.pop(name, None)
            if is_ours(name, value):  # neither the program nor a net has set it meanwhile
                _may_be_set(name, value)


def _may_be_set(name: str, value: Value) -> bool:
    """Set it, and return whether that is allowed."""
    try:
        knobs.load(name).apply(value)
    except ValueError:  # another choice of the user's forbids it
        return False
    return True


def _later() -> Any:
    """The module `later_settings`, in a process in which gputune has set a flag that it follows."""
    return sys.modules.get(f"{__package__}.nets.later_settings")


def reads() -> dict[str, Mapping[str, Any]]:
    """Each setting that torch can be asked about: its current value and default, or the fault as a failed row."""
    answers: dict[str, Mapping[str, Any]] = {}
    for name, knob in knobs.all_knobs().items():
        if knob.PHASE != "code":
            try:
                answers[name] = {"value": knob.current(), "default": knobs.default_of(knob)}
            except Exception as error:
                answers[name] = {"fault": failed(name, error_text(error)).plain}
    return answers


def _unknown(name: str) -> Applied:
    """The row of a setting of a newer gputune than the shim's."""
    return _remembered(failed(name, "this gputune has no such setting"))


def _current(name: str) -> Value:
    return cast(Value, knobs.load(name).current())


def _in_force(name: str) -> Value:
    """The current value, but for the moments of `without`."""
    current = _current(name)
    return _aside.get(name, (current, ""))[0] if current == knobs.load(name).DEFAULT else current


def _remembered(row: Applied) -> Applied:
    rows[row.setting] = row
    if row.status == "applied":
        _ours[row.setting] = row.after
    return row


def _set(knob: Knob, value: Value, when: str) -> Applied:
    name, before = name_of(knob), None
    try:
        before, default = knob.current(), knobs.default_of(knob)
        ours = None if is_the_programs(name) else _ours.get(name, default)
        row = left_alone(knob, value, before, default, ours)
        return _remembered(row or _changed(knob, value, before, when))
    except Exception as error:
        return _remembered(failed(name, error_text(error), before))


def _changed(knob: Knob, value: Value, before: Value, when: str) -> Applied:
    try:
        if hasattr(knob, "undoing"):
            from .nets import later_settings

            later_settings.follow(knob)
        knob.apply(value)
    except ValueError as error:  # how a knob says that another choice of the user's forbids the value
        return row_of(knob, "kept-user", "program", str(error), before)
    return after_apply(knob, value, before, knob.current(), when)


def left_alone(knob: Knob, value: Value, current: Value, default: Value, ours: Value) -> Applied | None:
    """The row of a flag of torch's that already has the value, or has another one that the program chose. None where it
    may be set. `ours` is the value that gputune set before in this process, or torch's default.
    """
    if current == value:
        source: Source = "profile" if value == ours != default else "torch" if value == default else "program"
        return row_of(knob, "applied", source, "already had this value", current)
    if current == ours:
        return None
    why = f"the program or its environment had already set {current}"
    return row_of(knob, "kept-user", "program", why, current)


def after_apply(knob: Knob, value: Value, before: Value, after: Value, when: str) -> Applied:
    """The row of a flag that was just set: failed where it reads back as something else."""
    if after == value:
        return row_of(knob, "applied", "profile", when, before, after)
    return row_of(knob, "failed", "profile", f"set to {value}, but reads back as {after}", before, after)


def read_back(knob: Knob, value: Value, current: Value) -> Applied:
    """The row of a launch setting in a process that was started with its variable, where nothing more is set."""
    if current == value:
        return row_of(knob, "applied", "profile", "through its environment variable", current)
    return row_of(knob, "kept-user", "environment", f"its environment variable asked for {value}", current)


def as_now(row: Applied, current: Callable[[], Value], is_the_programs: bool = False) -> Applied:
    """The row as it is now: changed-later if the program has set something else since, or has set it
    (`is_the_programs`), be it to the same value. `current` may raise.
    """
    if row.status in ("failed", "skipped"):
        return row
    try:
        value = current()
    except Exception as fault:
        return row.and_because(f"its current value cannot be read: {type(fault).__name__}")
    if value == row.after and not (is_the_programs and row.status == "applied"):
        return row
    why = "the program later set it itself" if value == row.after else f"the program later changed it from {row.after}"
    return replace(row, after=value, status="changed-later", source="program", reasons=(why,))


def skipped(knob: Knob, why: Why | str) -> Applied:
    return row_of(knob, "skipped", "torch" if is_one(why, Reason.DEFAULT) else None, why)


def exported(knob: Knob, value: Value, environ: Mapping[str, str], ours: Mapping[str, str]) -> Applied | None:
    """The row of a launch setting whose variables are already in the environment. None where none of them is, and where
    an enclosing `gputune apply` exported them (`ours`) with another value, which this one replaces.
    """
    present = {variable: environ[variable] for variable in knob.NAMES if variable in environ}
    if not present:
        return None
    same = set(present.values()) <= set(knob.environ(value).values())
    by_us = present.items() <= ours.items()
    if by_us and not same:
        return None
    held: Value = value if same else ", ".join(dict.fromkeys(present.values()))
    source: Source = "profile" if by_us else "environment"
    why = f"already exported: {', '.join(assignments(present))}"
    return row_of(knob, "applied" if same else "kept-user", source, why, held)


def failed(name: str, why: Why | str, before: Value = None) -> Applied:
    return Applied(setting=name, before=before, after=before, status="failed", reasons=(why,))


def error_text(fault: BaseException) -> str:
    """The type and message of an exception on one line; of the one within, if torch's compiler wrapped it."""
    fault = getattr(fault, "inner_exception", None) or fault
    return f"{type(fault).__name__}: {' '.join(str(fault).split())[:200]}"


def row_of(knob: Knob, status: Status, source: Source | None, why: Why | str, *values: Value) -> Applied:
    """`values` are the one before and the one after, a single one that stayed, or none."""
    before, after = (values[0], values[-1]) if values else (None, None)
    name = name_of(knob)
    return Applied(setting=name, before=before, after=after, status=status, source=source, reasons=(why,))


def assignments(variables: Mapping[str, str]) -> list[str]:
    return [f"{variable}={text}" for variable, text in variables.items()]
