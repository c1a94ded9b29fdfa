"""What became of each choice of a profile, and the reasons for which one is not applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from gputune import settings
from gputune.facts.environment import TF32_OVERRIDE
from gputune.profile import Fingerprint, Profile
from gputune.runtime.launch import disabled
from gputune.settings import Value

Status = Literal["applied", "kept-user", "skipped", "failed"]

DISABLED = "GPUTUNE_DISABLE=1"
DEFAULT = "torch's default"
ELSEWHERE = "measured on another machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One setting: what it was before, what it is now, and why. None where there is nothing to tell."""

    setting: str
    before: Value
    after: Value
    status: Status
    why: str


def skipped(name: str, why: str) -> Applied:
    return Applied(setting=name, before=None, after=None, status="skipped", why=why)


def is_default(name: str, value: Value) -> bool:
    """Whether the value says to leave torch alone: None, and for a line in the script also false, zero and nothing."""
    return value is None or (settings.load(name).PHASE == "code" and not value)


def differences(profile: Profile, name: str, here: Fingerprint) -> list[str]:
    """What a setting's choice rests on and is not the same here, in words."""
    return profile.fingerprint.differences(here, settings.load(name).DEPENDS)


def refusal(name: str, value: Value, differing: list[str], environ: Mapping[str, str]) -> str | None:
    """Why a choice is not applied here whatever the user set; None where it may be."""
    if disabled(environ):
        return DISABLED
    if is_default(name, value):
        return DEFAULT
    return f"{ELSEWHERE}: {', '.join(differing)}" if differing else None


def in_script(name: str, value: Value) -> Applied:
    """The row of a choice that only the user can put into effect."""
    why = f"takes a line in the script: {settings.load(name).USE}"
    return Applied(setting=name, before=None, after=value, status="skipped", why=why)


def exported(name: str, value: Value, environ: Mapping[str, str]) -> Applied | None:
    """The row of a launch setting one of whose variables is in the environment already; None where none is."""
    wanted = settings.load(name).environ(value)
    there = {variable: environ[variable] for variable in wanted if variable in environ}
    if not there:
        return None
    says = ", ".join(f"{variable}={text}" for variable, text in there.items())
    same = there.items() <= wanted.items()
    before: Value = ", ".join(there.values())
    return Applied(
        setting=name,
        before=value if same else before,
        after=value if same else before,
        status="applied" if same else "kept-user",
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
