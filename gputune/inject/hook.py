"""Applies settings to the torch of this process, reads them back, and remembers what it did.

Loaded below the private parent (`private.py`): below `gputune apply` right after torch's own body ran, and by `gputune.apply()`.
It writes nothing to stdout and does not touch CUDA.
"""

import json
import os
import sys

from .. import settings

MOST_BYTES = 4096

applied = []
"""A dictionary for each setting that was asked for, in order: setting, before, after, status, source, why."""

REPORT = "GPUTUNE_REPORT"
"""Set to 1, every Python that imported torch says at its end, on stderr, what was applied and what the program changed later."""

_ours = {}  # what was set from here, by setting: it differs from torch's default and yet is not the user's choice


def run(payload):
    """Apply the JSON object of GPUTUNE_APPLY: names of settings to values. Never raises; a fault is a line on stderr."""
    try:
        values = _values(payload)
        other = _another_torch(values.pop("torch", None))
        rows = apply_values(
            {name: values[name] for name in values if name not in other}, "right after import torch", True
        )
        applied.extend(other[name] for name in values if name in other)
    except Exception as error:
        say(f"settings were not applied: {type(error).__name__}: {error}")
        return
    for row in rows:
        if row["status"] == "failed":
            say(f"{row['setting']} was not applied: {row['why']}")
    if os.environ.get(REPORT) == "1":
        import atexit

        atexit.register(_report)


def apply_values(values, when, read_back=False):
    """Apply each value and return its row, kept in `applied` too; `when` says in words when that is.

    `read_back`: what variables set was exported before this process started, and is only looked at. Raises only where the
    settings cannot be loaded.
    """
    rows = [_apply_one(name, value, when, read_back) for name, value in values.items()]
    applied.extend(rows)
    return rows


def now():
    """The rows of `applied` as they stand now: `changed-later` where the program has set something else since."""
    latest = {row["setting"]: row for row in applied}
    return [_as_it_is(row) for row in latest.values()]


def reads():
    """For each setting that torch can be asked about: its value now and torch's default, or the fault."""
    read = {}
    for name in settings.names():
        setting = settings.load(name)
        if setting.PHASE == "code":
            continue
        try:
            read[name] = {"value": setting.current(), "default": setting.default()}
        except Exception as error:
            read[name] = {"fault": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    return read


def say(fault):
    try:
        sys.stderr.write(f"gputune: {' '.join(fault.split())}\n")
    except Exception:
        return  # stderr may be closed or full, and the program that it belongs to goes on


def _values(payload):
    if len(payload.encode(errors="surrogateescape")) > MOST_BYTES:
        raise ValueError(f"GPUTUNE_APPLY is longer than {MOST_BYTES} bytes")
    values = json.loads(payload)
    if not isinstance(values, dict):
        raise ValueError("GPUTUNE_APPLY is not a JSON object")
    return values


def _another_torch(measured):
    """Rows of the settings that rest on torch's version, where another was measured; none where it was this one."""
    version = str(sys.modules["torch"].__version__)
    if measured in (None, version):
        return {}
    why = f"measured with torch {measured}, and this is {version}"
    row = {"before": None, "after": None, "status": "skipped", "source": None, "why": why}
    resting = [name for name in settings.names() if "torch" in settings.load(name).DEPENDS]
    return {name: {"setting": name, **row} for name in resting}


def _as_it_is(row):
    if row["status"] in ("failed", "skipped"):
        return row
    try:
        value = settings.load(row["setting"]).current()
    except Exception as error:
        return {**row, "why": f"{row['why']}; now it cannot be read: {type(error).__name__}"}
    if value == row["after"]:
        return row
    why = f"the program changed it later, from {row['after']}"
    return {**row, "after": value, "status": "changed-later", "source": "program", "why": why}


def _report():
    rank = os.environ.get("RANK")
    who = f"pid {os.getpid()}" if rank is None else f"rank {rank}, pid {os.getpid()}"
    for row in now():
        say(f"{who}: {row['setting']} {row['after']}: {row['status']} ({row['source']}), {row['why']}")


def _apply_one(name, value, when, read_back):
    row = {"setting": name, "before": None, "after": None, "status": "failed", "source": None, "why": ""}
    if name not in settings.names():
        row["why"] = "there is no such setting"
        return row
    try:
        setting = settings.load(name)
        row["before"] = row["after"] = setting.current()
        change = _exported if read_back and setting.PHASE == "launch" else _change
        row["status"], row["source"], row["why"] = change(setting, name, value, row["before"])
        row["why"] = row["why"] or when
        row["after"] = setting.current()
    except Exception as error:
        row["why"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if row["status"] == "applied" and row["after"] != value:
        row["status"], row["why"] = "failed", f"it was set to {value} and reads {row['after']}"
    if row["status"] == "applied":
        _ours[name] = value
    return row


def _exported(setting, name, value, before):
    """What its variable made of a launch setting: nothing is set here."""
    if before == value:
        return "applied", "profile", "by its variable"
    return "kept-user", "environment", f"its variable asks for {value}"


def _change(setting, name, value, before):
    """Set the value unless the user chose otherwise; status, whose value holds, and the reason where there is one."""
    if before == value:
        ours = "torch" if value == setting.default() else "program"
        return "applied", "profile" if name in _ours else ours, "it already was so"
    if before != _ours.get(name, setting.default()):
        return "kept-user", "program", f"the program or its environment had set {before}"
    try:
        setting.apply(value)
    except ValueError as error:  # a setting's word for: something else that the user chose forbids it
        return "kept-user", "program", str(error)
    return "applied", "profile", ""
