"""What becomes of a setting: applied, kept as the user had it, changed later, skipped or failed, and why.

One decision for all three ways to apply a profile: exported for a command, set by the shim right after torch's import, and set by
`gputune.apply` in a running process. Everything here is pure: the settings' own functions have been called by whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from .. import plugins
from ..settings import LEVELS, Numerics, Value
from .applied import TF32_OVERRIDE, Applied, Reason, Source, Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms a profile is applied."""

    ignore_fingerprint: bool = False
    """Apply what was measured on another machine, too."""
    numerics: Numerics | None = None
    """The highest effect on results that is allowed; None for no limit beyond the settings' own."""
    ranks: bool = False
    """The command starts several processes, to which what was measured for one is not exported."""


def is_default(setting: plugins.Setting, value: Value) -> bool:
    """Whether the value says to leave torch alone: None, and but for torch's flags also false, zero and nothing."""
    return value is None or (setting.PHASE != "process" and not value)


def refused(
    setting: plugins.Setting, value: Value, differences: Iterable[str], environ: Mapping[str, str], terms: Terms
) -> Applied | None:
    """The row of a choice that is skipped whatever the user set; None where it may be applied. `differences`: what the choice rests on
    and is another here.
    """
    if environ.get("GPUTUNE_DISABLE") == "1":
        return skipped(setting, Reason.DISABLED())
    if is_default(setting, value):
        return skipped(setting, Reason.DEFAULT())
    if elsewhere := tuple(differences):
        return skipped(setting, Reason.ELSEWHERE(*elsewhere))
    if is_beyond(setting, value, terms.numerics):
        return skipped(setting, Reason.BEYOND_NUMERICS(terms.numerics, setting.NUMERICS))
    return in_script(setting, value) if setting.PHASE == "code" else None


def is_beyond(setting: plugins.Setting, value: Value, most: Numerics | None) -> bool:
    """Whether a value other than torch's default goes further in what it does to results than the limit."""
    if most is None or value == getattr(setting, "DEFAULT", None):
        return False
    return LEVELS.index(setting.NUMERICS) > LEVELS.index(most)


def skipped(setting: plugins.Setting, why: Why) -> Applied:
    source: Source | None = "torch" if why.reason is Reason.DEFAULT else None
    return Applied(setting=plugins.name_of(setting), status="skipped", source=source, reasons=(why,))


def in_script(setting: plugins.Setting, value: Value) -> Applied:
    """The row of a choice that only a line in the user's script can put into effect."""
    why = Reason.IN_SCRIPT(setting.USE)
    return Applied(setting=plugins.name_of(setting), after=value, status="skipped", source="profile", reasons=(why,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a line of the script has come to for one setting."""

    value: Value
    used: bool
    """The line has run."""
    family: str | None = None
    """The kind of network whose own choice the value is."""
    failure: Why | None = None
    notes: tuple[Why, ...] = ()
    """Why the value is not as it was chosen."""


def in_code(setting: plugins.Setting, row: Applied, line: Line) -> Applied:
    """The row of a choice that takes a line in the script, now that the line may have run."""
    if line.family is None and row.source != "profile":
        return row
    if line.failure:
        return replace(row, after=False, status="failed", source="torch", reasons=(line.failure,))
    if is_default(setting, line.value) and not line.notes:
        return skipped(setting, Reason.DEFAULT())
    new = in_script(setting, line.value)
    if line.used:
        why = Reason.BY_LINE_FOR(line.family) if line.family else Reason.BY_LINE()
        new = replace(new, status="applied", reasons=(why,))
    return new.and_because(*line.notes)


def exported(
    setting: plugins.Setting, value: Value, environ: Mapping[str, str], ours: Mapping[str, str]
) -> Applied | None:
    """The row of a launch setting one of whose variables is in the environment already; None where none is, or where an apply further
    out put it there (`ours`) and this one wants another.
    """
    there = {variable: environ[variable] for variable in setting.NAMES if variable in environ}
    if not there:
        return None
    same = set(there.values()) <= set(setting.environ(value).values())
    by_us = there.items() <= ours.items()
    if by_us and not same:
        return None
    held: Value = value if same else ", ".join(dict.fromkeys(there.values()))
    return Applied(
        setting=plugins.name_of(setting),
        before=held,
        after=held,
        status="applied" if same else "kept-user",
        source="profile" if by_us else "environment",
        reasons=(Reason.EXPORTED(*_assignments(there)),),
    )


def for_command(
    setting: plugins.Setting, value: Value, environ: Mapping[str, str], ours: Mapping[str, str], terms: Terms
) -> Applied:
    """The row of a choice that nothing refuses, for a command that is about to start."""
    name = plugins.name_of(setting)
    if setting.PHASE == "process":
        why = Reason.AFTER_TORCH()
    else:
        if kept := exported(setting, value, environ, ours):
            shared = terms.ranks and kept.status == "applied"
            return skipped(setting, Reason.SHARED_CPUS()) if shared else kept
        if terms.ranks:
            return skipped(setting, Reason.SHARED_CPUS())
        why = Reason.EXPORTS(*_assignments(setting.environ(value)))
    return Applied(setting=name, after=value, status="applied", source="profile", reasons=(why,))


def read_back(setting: plugins.Setting, value: Value, current: Value) -> Applied:
    """The row of a launch setting in a process that started with its variable: nothing is set there."""
    took = current == value
    return Applied(
        setting=plugins.name_of(setting),
        before=current,
        after=current,
        status="applied" if took else "kept-user",
        source="profile" if took else "environment",
        reasons=(Reason.BY_VARIABLE() if took else Reason.VARIABLE_ASKS(value),),
    )


def in_force(setting: plugins.Setting, value: Value, current: Value, default: Value, ours: Value) -> Applied | None:
    """The row of a flag of torch's that is not to be set: it has the value already, or the program chose another. None where it may be
    set. `ours` is what gputune itself set before, else the default.
    """
    name = plugins.name_of(setting)
    if current == value:
        source: Source = "profile" if value == ours != default else "torch" if value == default else "program"
        return Applied(
            setting=name, before=current, after=current, status="applied", source=source, reasons=(Reason.ALREADY(),)
        )
    if current != ours:
        return kept(setting, current, Reason.SET_BEFORE(current))
    return None


def kept(setting: plugins.Setting, current: Value, why: Why) -> Applied:
    """The row of what the program chose itself."""
    name = plugins.name_of(setting)
    return Applied(setting=name, before=current, after=current, status="kept-user", source="program", reasons=(why,))


def was_set(setting: plugins.Setting, value: Value, before: Value, after: Value, when: Why) -> Applied:
    """The row of a flag after it was set: failed where it reads otherwise."""
    took = after == value
    return Applied(
        setting=plugins.name_of(setting),
        before=before,
        after=after,
        status="applied" if took else "failed",
        source="profile",
        reasons=(when if took else Reason.READS_OTHERWISE(value, after),),
    )


def not_set_here(name: str, current: Value, default: Value) -> Applied:
    """The row of a flag that gputune did not set in a process."""
    own = current == default
    return Applied(
        setting=name,
        before=current,
        after=current,
        status="skipped" if own else "kept-user",
        source="torch" if own else "environment",
        reasons=(Reason.NOT_SET_HERE(),),
    )


def failed(name: str, why: Why, before: Value = None) -> Applied:
    return Applied(setting=name, before=before, after=before, status="failed", reasons=(why,))


def error(fault: BaseException) -> Why:
    """What was raised, on one line."""
    return Reason.ERROR(type(fault).__name__, " ".join(str(fault).split())[:200])


def now(row: Applied, current: Callable[[], Value]) -> Applied:
    """The row as it is now: changed-later where the program has set something else since. `current` may raise."""
    if row.status in ("failed", "skipped"):
        return row
    try:
        value = current()
    except Exception as fault:
        return row.and_because(Reason.UNREADABLE_NOW(type(fault).__name__))
    if value == row.after:
        return row
    why = Reason.CHANGED_LATER(row.after)
    return replace(row, after=value, status="changed-later", source="program", reasons=(why,))


def with_override(setting: plugins.Setting, row: Applied, environ: Mapping[str, str]) -> Applied:
    """The row, which also says where NVIDIA_TF32_OVERRIDE, which NVIDIA's libraries put above torch's flags, defeats it."""
    if row.status != "applied" or setting.NUMERICS != "tf32":
        return row
    allows = row.after in ("tf32", True)
    defeats = {("0", True): Reason.TF32_FORBIDDEN, ("1", False): Reason.TF32_FORCED}
    reason = defeats.get((environ.get(TF32_OVERRIDE, ""), allows))
    return row.and_because(reason()) if reason else row


def _assignments(variables: Mapping[str, str]) -> list[str]:
    return [f"{variable}={text}" for variable, text in variables.items()]
