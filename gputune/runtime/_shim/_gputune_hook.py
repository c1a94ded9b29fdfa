"""Applies settings to the torch of this process, reads them back, and remembers what it did.

Loaded by its path: below `gputune apply` right after torch's own body ran, and by `gputune.apply()`. It must not import gputune,
which would stand in the way of another gputune that the user's program imports: it loads the folder of settings as a
private package. It writes nothing to stdout, does not touch CUDA, and imports the standard library only.
"""

import importlib.util
import json
import os
import sys

MOST_BYTES = 4096
_PACKAGE = "_gputune_settings"
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "settings")

applied = []
"""A dictionary for each setting that was asked for, in order: setting, before, after, status, why."""

_ours = {}  # what was set from here, by setting: it differs from torch's default and yet is not the user's choice


def run(payload):
    """Apply the JSON object of GPUTUNE_APPLY: names of settings to values. Never raises; a fault is a line on stderr."""
    try:
        rows = apply_values(_values(payload), "right after import torch")
    except Exception as error:
        say(f"settings were not applied: {type(error).__name__}: {error}")
        return
    for row in rows:
        if row["status"] == "failed":
            say(f"{row['setting']} was not applied: {row['why']}")


def apply_values(values, when):
    """Apply each value and return its row, kept in `applied` too; `when` says in words when that is.

    Raises only where the settings cannot be loaded.
    """
    settings = _settings()
    rows = [_apply_one(settings, name, value, when) for name, value in values.items()]
    applied.extend(rows)
    return rows


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


def _settings():
    package = sys.modules.get(_PACKAGE)
    if package is None:
        spec = importlib.util.spec_from_file_location(
            _PACKAGE, os.path.join(_FOLDER, "__init__.py"), submodule_search_locations=[_FOLDER]
        )
        package = importlib.util.module_from_spec(spec)
        sys.modules[_PACKAGE] = package
        try:
            spec.loader.exec_module(package)
        except BaseException:
            del sys.modules[_PACKAGE]
            raise
    return package


def _apply_one(settings, name, value, when):
    row = {"setting": name, "before": None, "after": None, "status": "failed", "why": ""}
    if name not in settings.names():
        row["why"] = "there is no such setting"
        return row
    try:
        setting = settings.load(name)
        row["before"] = row["after"] = setting.current()
        row["status"], row["why"] = _change(setting, name, value, row["before"])
        row["why"] = row["why"] or when
        row["after"] = setting.current()
    except Exception as error:
        row["why"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if row["status"] == "applied" and row["after"] != value:
        row["status"], row["why"] = "failed", f"it was set to {value} and reads {row['after']}"
    if row["status"] == "applied":
        _ours[name] = value
    return row


def _change(setting, name, value, before):
    """Set the value unless the user chose otherwise; status, and the reason where there is one."""
    if before == value:
        return "applied", "it already was so"
    if before != _ours.get(name, setting.default()):
        return "kept-user", f"the program or its environment had set {before}"
    try:
        setting.apply(value)
    except ValueError as error:  # a setting's word for: something else that the user chose forbids it
        return "kept-user", str(error)
    return "applied", ""
