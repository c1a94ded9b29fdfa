"""What became of each choice of a profile, and the reasons for which one is not applied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from gputune import settings
from gputune.facts.environment import TF32_OVERRIDE
from gputune.profile import Fingerprint, Profile
from gputune.runtime.launch import disabled
from gputune.runtime.numerics import beyond
from gputune.settings import Numerics, Value

Status = Literal["applied", "kept-user", "changed-later", "skipped", "failed"]
Source = Literal["profile", "environment", "program", "torch"]

PAYLOAD = "GPUTUNE_APPLY"
"""The variable in which values travel to the shim."""

DISABLED = "GPUTUNE_DISABLE=1"
DEFAULT = "torch's default"
ELSEWHERE = "measured on another machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One setting: what it was before, what it is now, who chose that, and why. None where there is nothing to tell."""

    setting: str
    before: Value
    after: Value
    status: Status
    source: Source | None
    """Whose value holds: the profile's, one of the environment, one that the program set itself, or torch's default."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms a profile is applied."""

    ignore_fingerprint: bool = False
    """Also what was measured on another machine."""
    numerics: Numerics | None = None
    """The highest effect on results that is allowed; None for no limit beyond the settings' own."""
    ranks: bool = False
    """The command starts several processes, to which what was measured for one is not exported."""


NOTHING_SAID = Terms()


def skipped(name: str, why: str) -> Applied:
    source: Source | None = "torch" if why == DEFAULT else None
    return Applied(setting=name, before=None, after=None, status="skipped", source=source, why=why)


def is_default(name: str, value: Value) -> bool:
    """Whether the value says to leave torch alone: None, and but for torch's flags also false, zero and nothing."""
    return value is None or (settings.load(name).PHASE != "process" and not value)


def differences(profile: Profile, name: str, here: Fingerprint, terms: Terms) -> list[str]:
    """What a setting's choice rests on and is not the same here, in words; nothing where that is to be ignored."""
    return [] if terms.ignore_fingerprint else profile.fingerprint.differences(here, settings.load(name).DEPENDS)


def refusal(name: str, value: Value, differing: list[str], environ: Mapping[str, str], terms: Terms) -> str | None:
    """Why a choice is not applied here whatever the user set; None where it may be."""
    if disabled(environ):
        return DISABLED
    if is_default(name, value):
        return DEFAULT
    if differing:
        return f"{ELSEWHERE}: {', '.join(differing)}"
    return beyond(name, value, terms.numerics)


def in_script(name: str, value: Value) -> Applied:
    """The row of a choice that only the user can put into effect."""
    why = f"takes a line in the script: {settings.load(name).USE}"
    return Applied(setting=name, before=None, after=value, status="skipped", source="profile", why=why)


def by_line(name: str, value: Value, kind: str | None) -> Applied:
    """The row of a choice whose line in the script has run; `kind` of network where the choice is that kind's own."""
    if is_default(name, value):
        return skipped(name, DEFAULT)
    why = f"by the script's own line{f', for a {kind}' if kind else ''}"
    return Applied(setting=name, before=None, after=value, status="applied", source="profile", why=why)


def handed_down(environ: Mapping[str, str]) -> Mapping[str, Value]:
    """The values that a `gputune apply` further out set or exported, by setting."""
    try:
        values = json.loads(environ.get(PAYLOAD, ""))
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def by_an_outer_apply(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The variables as a `gputune apply` further out exported them."""
    outer = {name: value for name, value in handed_down(environ).items() if name in settings.names()}
    launch = (
        settings.load(name).environ(value) for name, value in outer.items() if settings.load(name).PHASE == "launch"
    )
    return {variable: text for variables in launch for variable, text in variables.items()}


def digest(environ: Mapping[str, str]) -> str | None:
    """What was applied in this environment, in 16 hexadecimal digits of SHA-256: the values that travel to torch, and what the
    variables of the launch settings among them hold now. Ranks with the same one start alike. None where nothing was applied.
    """
    import hashlib

    values = handed_down(environ)
    if not values or disabled(environ):
        return None
    variables = {name: environ.get(name) for name in by_an_outer_apply(environ)}
    text = json.dumps([values, variables], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def exported(name: str, value: Value, environ: Mapping[str, str]) -> Applied | None:
    """The row of a launch setting one of whose variables is in the environment already; None where none is, or where an apply further
    out put it there and this one wants another.
    """
    setting = settings.load(name)
    wanted = set(setting.environ(value).values())
    there = {variable: environ[variable] for variable in setting.NAMES if variable in environ}
    if not there:
        return None
    says = ", ".join(f"{variable}={text}" for variable, text in there.items())
    same = set(there.values()) <= wanted
    held: Value = value if same else ", ".join(dict.fromkeys(there.values()))
    ours = there.items() <= by_an_outer_apply(environ).items()
    if ours and not same:
        return None
    return Applied(
        setting=name,
        before=held,
        after=held,
        status="applied" if same else "kept-user",
        source="profile" if ours else "environment",
        why=f"{says} is exported",
    )


def defeat(name: str, value: Value, environ: Mapping[str, str]) -> str | None:
    """How NVIDIA_TF32_OVERRIDE, which the NVIDIA libraries put above torch's flags, defeats a value; None where it does not."""
    if settings.load(name).NUMERICS != "tf32":
        return None
    wanted = value in ("tf32", True)
    override = environ.get(TF32_OVERRIDE)
    if override == "0" and wanted:
        return f"{TF32_OVERRIDE}=0 defeats it: no TF32 will run"
    if override == "1" and not wanted:
        return f"{TF32_OVERRIDE}=1 defeats it: TF32 will run in matmuls and RNNs"
    return None


def with_defeat(row: Applied, environ: Mapping[str, str]) -> Applied:
    """The row, whose reason also says what defeats it."""
    why = defeat(row.setting, row.after, environ) if row.status == "applied" else None
    return replace(row, why=f"{row.why}; {why}") if why else row
