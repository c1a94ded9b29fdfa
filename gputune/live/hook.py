"""Applies settings to this process's torch, reads them back, and remembers what it did.

It is loaded below the private parent (`private.py`): by the shim right after torch was imported, and by
`gputune.apply()`. Callers get rows as plain dictionaries (`Applied.plain`). It writes nothing to stdout and does not
touch CUDA.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from .. import knobs
from ..knobs import Value
from ..resources.files import Files
from ..resources.printable import printable
from . import applied, payload
from .applied import Applied

if TYPE_CHECKING:
    from .advice import Advice
    from .injection import Injection
    from .payload import Trial

REPORT = "GPUTUNE_REPORT"
"""If 1, or json, every Python that imported torch reports on stderr at exit what was applied and what changed later."""

rows: dict[str, Applied] = {}
"""The latest row of each setting that was to be applied in this process, by name."""

_ours: dict[str, Value] = {}
"""The values that gputune set, by setting: other than torch's default, and yet not the user's choice."""


_injections: list[Injection] = []
"""The one injection of this process, once there is one."""


def run(text: str) -> None:
    """Apply the payload of GPUTUNE_APPLY. Never raises: a fault becomes a line on stderr."""
    try:
        carried = payload.parse(text)
        for name, value in carried.settings.items():
            row = _remembered(_from_payload(name, value, carried.torch))
            if row.status == "failed":
                say(f"{name} was not applied: {row.why}")
        if carried.advice:
            inject(carried.advice.plain)
        if carried.trial:
            _begin(carried.trial, carried.advice)
    except Exception as error:
        say(f"settings were not applied: {type(error).__name__}: {error}")
        return
    if os.environ.get(REPORT) in ("1", "json"):
        import atexit

        atexit.register(_report)


def _begin(trial: Trial, advice: Advice | None) -> None:
    """Begin a run of a program that is being tuned, or end: it must not write where it should not."""
    from .tuning import run

    try:
        run.start(trial, advice)
    except Exception as error:
        say(f"this run could not be begun: {type(error).__name__}: {error}")
        os._exit(1)


def apply(name: str, value: Value) -> dict[str, Any]:
    """Set one value in this running process. Returns its row, which `rows` keeps."""
    if name not in knobs.names():  # of a newer gputune than the shim's
        return _remembered(applied.failed(name, "this gputune has no such setting")).plain
    setting = knobs.load(name)
    when = "in this process, too late for its environment variable" if setting.PHASE == "launch" else "in this process"
    return _remembered(_set(setting, value, when)).plain


def inject(advice: Mapping[str, Any]) -> None:
    """Put what was advised (`Advice.plain`) into this program's models and DataLoaders, once in a process."""
    if _injections:
        return
    from . import loader
    from .advice import Advice
    from .injection import Injection

    given = Advice.from_plain(advice)
    injection = Injection(given, _set_for_program, say)
    _injections.append(injection)
    injection.start()
    loader.start(given, Files(), injection.note)


def now() -> list[dict[str, Any]]:
    """The rows of `rows` as they are now: `changed-later` where the program has set something else since."""
    own = [applied.now(row, partial(_current, name)) for name, row in rows.items()]
    put_in = [row for injection in _injections for name, row in injection.rows.items() if name not in rows]
    return [row.plain for row in (*own, *put_in)]


def reads() -> dict[str, Mapping[str, Any]]:
    """Each setting that torch can be asked about: its current value and default, or the fault as a failed row."""
    answers: dict[str, Mapping[str, Any]] = {}
    for name, setting in knobs.all_knobs().items():
        if setting.PHASE == "code":
            continue
        try:
            answers[name] = {"value": setting.current(), "default": knobs.default_of(setting)}
        except Exception as error:
            answers[name] = {"fault": applied.failed(name, applied.error_text(error)).plain}
    return answers


def say(fault: str) -> None:
    _write(f"gputune: {printable(' '.join(fault.split()))}")


def _write(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
    except Exception:
        return  # stderr may be closed or full, and the program that it belongs to goes on


def _set_for_program(name: str, value: Value) -> Applied:
    setting, row = knobs.load(name), None
    if setting.PHASE == "launch":
        row = applied.exported(setting, value, os.environ, payload.exported_by_us(os.environ))
    return _remembered(replace(row, after=setting.current()) if row else _set(setting, value, "in this process"))


def _current(name: str) -> Value:
    return cast(Value, knobs.load(name).current())


def _remembered(row: Applied) -> Applied:
    rows[row.setting] = row
    if row.status == "applied":
        _ours[row.setting] = row.after
    return row


def _from_payload(name: str, value: Value, measured: str | None) -> Applied:
    if name not in knobs.names():
        return applied.failed(name, "this gputune has no such setting")
    setting, torch = knobs.load(name), str(sys.modules["torch"].__version__)
    if measured not in (None, torch) and "torch" in setting.DEPENDS:
        return applied.skipped(setting, f"measured with torch {measured}, but this is torch {torch}")
    if setting.PHASE != "launch":
        return _set(setting, value, "right after import torch")
    try:
        return applied.read_back(setting, value, setting.current())
    except Exception as error:
        return applied.failed(name, applied.error_text(error))


def _set(setting: knobs.Knob, value: Value, when: str) -> Applied:
    name, before = knobs.name_of(setting), None
    try:
        before, default = setting.current(), knobs.default_of(setting)
        row = applied.left_alone(setting, value, before, default, _ours.get(name, default))
        return row or _changed(setting, value, before, when)
    except Exception as error:
        return applied.failed(name, applied.error_text(error), before)


def _changed(setting: knobs.Knob, value: Value, before: Value, when: str) -> Applied:
    try:
        setting.apply(value)
    except ValueError as error:  # how a setting says that another choice of the user's forbids the value
        return applied.kept(setting, before, str(error))
    return applied.after_apply(setting, value, before, setting.current(), when)


def _report() -> None:
    rank = os.environ.get("RANK")
    if os.environ.get(REPORT) == "json":
        number = int(rank) if rank and rank.isdecimal() else None
        report = json.dumps({"gputune": {"pid": os.getpid(), "rank": number, "settings": now()}})
        _write(report.replace("\x7f", "\\u007f"))  # the one control character that JSON keeps
        return
    who = f"pid {os.getpid()}" if rank is None else f"rank {rank}, pid {os.getpid()}"
    for row in now():
        say(f"{who}: {row['setting']} {row['after']}: {row['status']} ({row['source']}), {row['why']}")
