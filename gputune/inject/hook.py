"""Applies settings to the torch of this process, reads them back, and remembers what it did.

Loaded below the private parent (`private.py`): below `gputune apply` right after torch's own body ran, and by `gputune.apply()`.
Rows leave this module as plain dictionaries (`Applied.plain`). It writes nothing to stdout and does not touch CUDA.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from .. import plugins, settings
from ..settings import Value
from . import decision, payload
from .applied import Applied, Reason, Why

REPORT = "GPUTUNE_REPORT"
"""Set to 1, every Python that imported torch says at its end, on stderr, what was applied and what the program changed later."""

applied: dict[str, Applied] = {}
"""What became of each setting that was asked for, by name; the latest where it was asked for twice."""

_ours: dict[str, Value] = {}
"""What was set from here, by setting: it differs from torch's default and yet is not the user's choice."""


def run(text: str) -> None:
    """Apply the JSON object of GPUTUNE_APPLY. Never raises; a fault is a line on stderr."""
    try:
        values, measured = payload.parse(text)
        for name, value in values.items():
            row = _kept(_from_payload(name, value, measured))
            if row.status == "failed":
                say(f"{name} was not applied: {row.why}")
    except Exception as error:
        say(f"settings were not applied: {type(error).__name__}: {error}")
        return
    if os.environ.get(REPORT) == "1":
        import atexit

        atexit.register(_report)


def apply(name: str, value: Value) -> dict[str, Any]:
    """Set one value in this running process; its row, kept in `applied` too."""
    setting = settings.load(name)
    when = Reason.IN_PROCESS_LATE() if setting.PHASE == "launch" else Reason.IN_PROCESS()
    return _kept(_set(setting, value, when)).plain


def now() -> list[dict[str, Any]]:
    """The rows of `applied` as they are now: `changed-later` where the program has set something else since."""
    return [decision.now(row, partial(_current, name)).plain for name, row in applied.items()]


def reads() -> dict[str, Mapping[str, Any]]:
    """For each setting that torch can be asked about: its value now and torch's default, or the fault as a failed row."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, setting in settings.all_settings().items():
        if setting.PHASE == "code":
            continue
        try:
            found[name] = {"value": setting.current(), "default": setting.default()}
        except Exception as error:
            found[name] = {"fault": decision.failed(name, decision.error(error)).plain}
    return found


def say(fault: str) -> None:
    try:
        sys.stderr.write(f"gputune: {' '.join(fault.split())}\n")
    except Exception:
        return  # stderr may be closed or full, and the program that it belongs to goes on


def _current(name: str) -> Value:
    value: Value = settings.load(name).current()
    return value


def _kept(row: Applied) -> Applied:
    applied[row.setting] = row
    if row.status == "applied":
        _ours[row.setting] = row.after
    return row


def _from_payload(name: str, value: Value, measured: str | None) -> Applied:
    if name not in settings.names():
        return decision.failed(name, Reason.NO_SUCH_SETTING())
    setting, torch = settings.load(name), str(sys.modules["torch"].__version__)
    if measured not in (None, torch) and "torch" in setting.DEPENDS:
        return decision.skipped(setting, Reason.OTHER_TORCH(measured, torch))
    if setting.PHASE != "launch":
        return _set(setting, value, Reason.AFTER_TORCH())
    try:
        return decision.read_back(setting, value, setting.current())
    except Exception as error:
        return decision.failed(name, decision.error(error))


def _set(setting: plugins.Setting, value: Value, when: Why) -> Applied:
    """Set the value unless the user chose otherwise, and read it back."""
    name, before = plugins.name_of(setting), None
    try:
        before, default = setting.current(), setting.default()
        row = decision.in_force(setting, value, before, default, _ours.get(name, default))
        return row or _changed(setting, value, before, when)
    except Exception as error:
        return decision.failed(name, decision.error(error), before)


def _changed(setting: plugins.Setting, value: Value, before: Value, when: Why) -> Applied:
    try:
        setting.apply(value)
    except ValueError as error:  # a setting's word for: something else that the user chose forbids it
        return decision.kept(setting, before, Reason.FORBIDDEN(error))
    return decision.was_set(setting, value, before, setting.current(), when)


def _report() -> None:
    rank = os.environ.get("RANK")
    who = f"pid {os.getpid()}" if rank is None else f"rank {rank}, pid {os.getpid()}"
    for row in now():
        say(f"{who}: {row['setting']} {row['after']}: {row['status']} ({row['source']}), {row['why']}")
