"""Deciding on each setting of a profile before a command starts, or in a process that applies a profile to itself.

Everything is pure: callers read torch and the environment themselves. The decisions that a process makes on torch's
flags are in `live/flags.py`, which is carried into it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gputune.knobs import Knob, Numerics, Value, is_beyond, is_default, name_of
from gputune.live.applied import TF32_OVERRIDE, Applied, Reason
from gputune.live.flags import assignments, exported, row_of, skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    ignore_fingerprint: bool = False
    """Also apply what was measured on another machine."""
    numerics: Numerics | None = None
    """The largest effect on results that is allowed; None for no limit beyond the settings' own."""
    ranks: bool = False
    """The command starts several processes, for which variables about the CPUs of a single one are not exported."""
    own_threads: int | None = None
    """How many threads torch would start by itself; None where that is not asked."""
    inject: bool = False
    """Also put what takes lines of a script into the models of a program."""
    inject_dataloader: bool = False
    """Also put arguments into DataLoaders that were given no workers."""
    only: tuple[str, ...] = ()
    """The settings that are applied; empty for all."""
    skip: tuple[str, ...] = ()
    quiet: bool = False
    profile: str = ""
    """The name of the profile's file, for messages; empty if it has none."""

    def asks_for(self, name: str) -> bool:
        return name not in self.skip and (not self.only or name in self.only)

    def but(self, **changes: Any) -> "Terms":
        return replace(self, **changes)


def refused(
    knob: Knob, value: Value, differences: Iterable[str], environ: Mapping[str, str], terms: Terms
) -> Applied | None:
    """The row of a choice that is skipped whatever the user set; None where it may be applied. `differences` describes
    the properties of the machine that the choice depends on and that differ from those measured.
    """
    if environ.get("GPUTUNE_DISABLE") == "1":
        return skipped(knob, "switched off by GPUTUNE_DISABLE=1")
    if is_default(knob, value):
        return skipped(knob, Reason.DEFAULT())
    if not terms.asks_for(name_of(knob)):
        return skipped(knob, "not among the settings that were asked for")
    if elsewhere := tuple(differences):
        return skipped(knob, Reason.ELSEWHERE(*elsewhere))
    if is_beyond(knob, value, terms.numerics):
        return skipped(knob, Reason.BEYOND_NUMERICS(terms.numerics, knob.NUMERICS))
    return in_script(knob, value) if knob.PHASE == "code" else None


def in_script(knob: Knob, value: Value) -> Applied:
    """The row of a choice that only a line in the user's script can put into effect."""
    return row_of(knob, "skipped", "profile", f"needs a line in the script: {knob.USE}", None, value)


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


def in_code(knob: Knob, row: Applied, line: Line) -> Applied:
    """The row of a choice that needs a line in the script, updated with what that line did."""
    if line.family is None and row.source != "profile" and not line.notes:
        return row
    if line.failure:
        return replace(row, after=False, status="failed", source="torch", reasons=(line.failure,))
    if is_default(knob, line.value) and not line.notes:
        return skipped(knob, Reason.DEFAULT())
    new = in_script(knob, line.value)
    if line.used:
        why = f"used by the script, with the value for {line.family} models" if line.family else "used by the script"
        new = replace(new, status="applied", reasons=(why,))
    return new.and_because(*line.notes)


def for_command(knob: Knob, value: Value, environ: Mapping[str, str], ours: Mapping[str, str], terms: Terms) -> Applied:
    """The row of a choice that was not refused, for a command that is about to start."""
    if knob.PHASE != "launch":
        return row_of(knob, "applied", "profile", "right after import torch", None, value)
    row = exported(knob, value, environ, ours)
    if terms.ranks and is_shared(knob) and (row is None or row.status == "applied"):
        return row_of(knob, "applied", "profile", "each rank has at most its share of the CPUs", None, value)
    exports = ", ".join(assignments(knob.environ(value)))
    return row or row_of(knob, "applied", "profile", exports, None, value)


def is_shared(knob: Knob) -> bool:
    """Whether it says how many of the CPUs a process uses, which several ranks share."""
    return "cpu_budget" in knob.DEPENDS


def not_set_here(knob: Knob, current: Value, default: Value) -> Applied:
    """The row of a flag that gputune did not set in a process."""
    if current == default:
        return row_of(knob, "skipped", "torch", "not set by gputune in this process", current)
    return row_of(knob, "kept-user", "environment", "not set by gputune in this process", current)


def with_override(knob: Knob, row: Applied, environ: Mapping[str, str]) -> Applied:
    """The row, with a reason added where NVIDIA_TF32_OVERRIDE, which overrules torch's flags, defeats it."""
    if row.status != "applied" or knob.NUMERICS != "tf32":
        return row
    allows = row.after in ("tf32", True)
    defeats = {("0", True): Reason.TF32_FORBIDDEN, ("1", False): Reason.TF32_FORCED}
    reason = defeats.get((environ.get(TF32_OVERRIDE, ""), allows))
    return row.and_because(reason()) if reason else row
