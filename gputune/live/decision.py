"""Deciding what becomes of a setting: applied, kept as the user had it, changed later, skipped or failed, and why.

All three ways of applying a profile decide here: exporting variables for a command, setting flags from the shim right
after `import torch`, and `gputune.apply` in a running process. Everything is pure: callers read torch and the
environment themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import plugins
from ..knobs import LEVELS, Numerics, Value
from .applied import TF32_OVERRIDE, Applied, Reason, Source, Status, Why, is_one


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    ignore_fingerprint: bool = False
    """Also apply what was measured on another machine."""
    numerics: Numerics | None = None
    """The largest effect on results that is allowed; None for no limit beyond the settings' own."""
    ranks: bool = False
    """The command starts several processes, for which variables measured with a single one are not exported."""
    inject: bool = False
    """Also put what takes lines of a script into the models of a program."""
    inject_dataloader: bool = False
    """Also put arguments into DataLoaders that were given no workers."""
    only: tuple[str, ...] = ()
    """The settings that are applied; empty for all."""
    skip: tuple[str, ...] = ()
    quiet: bool = False

    def asks_for(self, name: str) -> bool:
        return name not in self.skip and (not self.only or name in self.only)

    def but(self, **changes: Any) -> "Terms":
        return replace(self, **changes)


def is_default(setting: plugins.Setting, value: Value) -> bool:
    """Whether the value leaves torch alone: None always; False, zero and empty except for torch's own flags."""
    return value is None or (setting.PHASE != "process" and not value)


def refused(
    setting: plugins.Setting, value: Value, differences: Iterable[str], environ: Mapping[str, str], terms: Terms
) -> Applied | None:
    """The row of a choice that is skipped whatever the user set; None where it may be applied. `differences` describes
    the properties of the machine that the choice depends on and that differ from those measured.
    """
    if environ.get("GPUTUNE_DISABLE") == "1":
        return skipped(setting, "switched off by GPUTUNE_DISABLE=1")
    if is_default(setting, value):
        return skipped(setting, Reason.DEFAULT())
    if not terms.asks_for(plugins.name_of(setting)):
        return skipped(setting, "not among the settings that were asked for")
    if elsewhere := tuple(differences):
        return skipped(setting, Reason.ELSEWHERE(*elsewhere))
    if is_beyond(setting, value, terms.numerics):
        return skipped(setting, Reason.BEYOND_NUMERICS(terms.numerics, setting.NUMERICS))
    return in_script(setting, value) if setting.PHASE == "code" else None


def is_beyond(setting: plugins.Setting, value: Value, limit: Numerics | None) -> bool:
    """Whether a value affects results more than the limit allows; torch's default never does."""
    if limit is None or value == getattr(setting, "DEFAULT", None):
        return False
    return LEVELS.index(setting.NUMERICS) > LEVELS.index(limit)


def skipped(setting: plugins.Setting, why: Why | str) -> Applied:
    return _row(setting, "skipped", "torch" if is_one(why, Reason.DEFAULT) else None, why)


def in_script(setting: plugins.Setting, value: Value) -> Applied:
    """The row of a choice that only a line in the user's script can put into effect."""
    return _row(setting, "skipped", "profile", f"needs a line in the script: {setting.USE}", None, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The value of one setting that a line of the script uses, or would use."""

    value: Value
    used: bool
    family: str | None = None
    """The kind of network that the value was chosen for; None for the general choice."""
    failure: str | None = None
    notes: tuple[str, ...] = ()
    """Why the value differs from the profile's choice."""


def in_code(setting: plugins.Setting, row: Applied, line: Line) -> Applied:
    """The row of a choice that needs a line in the script, updated with what that line did."""
    if line.family is None and row.source != "profile" and not line.notes:
        return row
    if line.failure:
        return replace(row, after=False, status="failed", source="torch", reasons=(line.failure,))
    if is_default(setting, line.value) and not line.notes:
        return skipped(setting, Reason.DEFAULT())
    new = in_script(setting, line.value)
    if line.used:
        why = f"used by the script, with the value for {line.family} models" if line.family else "used by the script"
        new = replace(new, status="applied", reasons=(why,))
    return new.and_because(*line.notes)


def exported(
    setting: plugins.Setting, value: Value, environ: Mapping[str, str], ours: Mapping[str, str]
) -> Applied | None:
    """The row of a launch setting whose variables are already in the environment. None where none of them is, and where
    an enclosing `gputune apply` exported them (`ours`) with another value, which this one replaces.
    """
    present = {variable: environ[variable] for variable in setting.NAMES if variable in environ}
    if not present:
        return None
    same = set(present.values()) <= set(setting.environ(value).values())
    by_us = present.items() <= ours.items()
    if by_us and not same:
        return None
    held: Value = value if same else ", ".join(dict.fromkeys(present.values()))
    source: Source = "profile" if by_us else "environment"
    why = f"already exported: {', '.join(_assignments(present))}"
    return _row(setting, "applied" if same else "kept-user", source, why, held)


def for_command(
    setting: plugins.Setting, value: Value, environ: Mapping[str, str], ours: Mapping[str, str], terms: Terms
) -> Applied:
    """The row of a choice that was not refused, for a command that is about to start."""
    if setting.PHASE != "launch":
        return _row(setting, "applied", "profile", "right after import torch", None, value)
    row = exported(setting, value, environ, ours)
    if terms.ranks and "cpu_budget" in setting.DEPENDS and (row is None or row.status == "applied"):
        return skipped(setting, "the command starts several processes, which share the CPUs")
    exports = ", ".join(_assignments(setting.environ(value)))
    return row or _row(setting, "applied", "profile", exports, None, value)


def read_back(setting: plugins.Setting, value: Value, current: Value) -> Applied:
    """The row of a launch setting in a process that was started with its variable, where nothing more is set."""
    if current == value:
        return _row(setting, "applied", "profile", "through its environment variable", current)
    return _row(setting, "kept-user", "environment", f"its environment variable asked for {value}", current)


def left_alone(setting: plugins.Setting, value: Value, current: Value, default: Value, ours: Value) -> Applied | None:
    """The row of a flag of torch's that already has the value, or has another one that the program chose. None where it
    may be set. `ours` is the value that gputune set before in this process, or torch's default.
    """
    if current == value:
        source: Source = "profile" if value == ours != default else "torch" if value == default else "program"
        return _row(setting, "applied", source, "already had this value", current)
    if current == ours:
        return None
    return kept(setting, current, f"the program or its environment had already set {current}")


def kept(setting: plugins.Setting, current: Value, why: str) -> Applied:
    return _row(setting, "kept-user", "program", why, current)


def after_apply(setting: plugins.Setting, value: Value, before: Value, after: Value, when: str) -> Applied:
    """The row of a flag that was just set: failed where it reads back as something else."""
    if after == value:
        return _row(setting, "applied", "profile", when, before, after)
    return _row(setting, "failed", "profile", f"set to {value}, but reads back as {after}", before, after)


def not_set_here(setting: plugins.Setting, current: Value, default: Value) -> Applied:
    """The row of a flag that gputune did not set in a process."""
    if current == default:
        return _row(setting, "skipped", "torch", "not set by gputune in this process", current)
    return _row(setting, "kept-user", "environment", "not set by gputune in this process", current)


def failed(name: str, why: Why | str, before: Value = None) -> Applied:
    return Applied(setting=name, before=before, after=before, status="failed", reasons=(why,))


def error(fault: BaseException) -> str:
    """The type and message of an exception, on one line."""
    return f"{type(fault).__name__}: {' '.join(str(fault).split())[:200]}"


def now(row: Applied, current: Callable[[], Value]) -> Applied:
    """The row as it is now: changed-later where the program has set something else since. `current` may raise."""
    if row.status in ("failed", "skipped"):
        return row
    try:
        value = current()
    except Exception as fault:
        return row.and_because(f"its current value cannot be read: {type(fault).__name__}")
    if value == row.after:
        return row
    why = f"the program later changed it from {row.after}"
    return replace(row, after=value, status="changed-later", source="program", reasons=(why,))


def with_override(setting: plugins.Setting, row: Applied, environ: Mapping[str, str]) -> Applied:
    """The row, with a reason added where NVIDIA_TF32_OVERRIDE, which overrules torch's flags, defeats it."""
    if row.status != "applied" or setting.NUMERICS != "tf32":
        return row
    allows = row.after in ("tf32", True)
    defeats = {("0", True): Reason.TF32_FORBIDDEN, ("1", False): Reason.TF32_FORCED}
    reason = defeats.get((environ.get(TF32_OVERRIDE, ""), allows))
    return row.and_because(reason()) if reason else row


def _row(setting: plugins.Setting, status: Status, source: Source | None, why: Why | str, *values: Value) -> Applied:
    """`values` are the one before and the one after, a single one that stayed, or none."""
    before, after = (values[0], values[-1]) if values else (None, None)
    name = plugins.name_of(setting)
    return Applied(setting=name, before=before, after=after, status=status, source=source, reasons=(why,))


def _assignments(variables: Mapping[str, str]) -> list[str]:
    return [f"{variable}={text}" for variable, text in variables.items()]
