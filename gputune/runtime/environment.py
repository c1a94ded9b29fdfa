"""From a profile to the environment of a command: what is set, what travels to the shim, and what became of every choice.

Pure: an environment goes in as a mapping and comes out as a dictionary or as lines for a shell.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gputune import settings
from gputune.profile import Fingerprint, Profile
from gputune.runtime import applied
from gputune.runtime.applied import Applied
from gputune.settings import Value

__all__ = ["SHIM", "Applied", "Plan", "child", "exports", "plan"]

SHIM = str(Path(__file__).with_name("_shim"))
PAYLOAD = "GPUTUNE_APPLY"
AFTER_TORCH = "right after import torch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What applying a profile to a command comes to."""

    environ: dict[str, str]
    """Variables to add: those of the launch settings."""
    payload: str
    """The process settings that the shim applies, as canonical JSON of at most 4 KiB; empty where there are none."""
    applied: tuple[Applied, ...]
    elsewhere: tuple[str, ...] = ()
    """The settings that are skipped because this machine differs from the one that was measured."""
    differences: tuple[str, ...] = ()
    """In what it differs, in words."""
    defeated: tuple[str, ...] = ()
    """The settings that NVIDIA_TF32_OVERRIDE makes ineffective."""


def plan(
    profile: Profile,
    here: Fingerprint,
    environ: Mapping[str, str],
    ignore_fingerprint: bool = False,
    ranks: bool = False,
) -> Plan:
    """Decide about every setting of the profile. A variable that `environ` holds already is the user's, and stays.

    `ranks`: the command starts several processes, to which what was measured for one is not exported.
    """
    chosen = {name: choice.value for name, choice in profile.settings.items()}
    differing = {name: [] if ignore_fingerprint else applied.differences(profile, name, here) for name in chosen}
    rows = [_row(name, value, differing[name], environ) for name, value in chosen.items()]
    if ranks:
        rows = [_shared(row) for row in rows]
    done = {row.setting: chosen[row.setting] for row in rows if row.status == "applied"}
    elsewhere = [row.setting for row in rows if row.why.startswith(applied.ELSEWHERE)]
    return Plan(
        environ=_variables(done, environ),
        payload=_payload(done),
        applied=tuple(applied.with_defeat(row, environ) for row in rows),
        elsewhere=tuple(elsewhere),
        differences=tuple(dict.fromkeys(words for name in elsewhere for words in differing[name])),
        defeated=tuple(
            name for name, value in done.items() if profile.fingerprint.gpu and applied.defeat(name, value, environ)
        ),
    )


def child(planned: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """The whole environment for the command: `environ`, the additions, the payload, and the shim first on PYTHONPATH."""
    whole = {**environ, **planned.environ}
    whole.pop(PAYLOAD, None)  # of an apply further out: this profile replaces that one
    if planned.payload:
        whole[PAYLOAD] = planned.payload
        whole["PYTHONPATH"] = _python_path(environ.get("PYTHONPATH", ""))
    return whole


def exports(planned: Plan) -> str:
    """The same as lines for a POSIX shell. Evaluating them twice does no more than once."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(planned.environ.items())]
    if planned.payload:
        shim = shlex.quote(SHIM) if shlex.quote(SHIM) != SHIM else f"'{SHIM}'"
        lines.append(f"export {PAYLOAD}={shlex.quote(planned.payload)}")
        lines.append(
            f'case "${{PYTHONPATH-}}:" in {shim}:*) ;; '
            f'*) export PYTHONPATH={shim}"${{PYTHONPATH:+:$PYTHONPATH}}" ;; esac'
        )
    else:
        lines.append(f"unset {PAYLOAD}")
    return "".join(f"{line}\n" for line in lines)


def _row(name: str, value: Value, differing: list[str], environ: Mapping[str, str]) -> Applied:
    phase = settings.load(name).PHASE
    why = applied.refusal(name, value, differing, environ)
    if why:
        return applied.skipped(name, why)
    if phase == "code":
        return applied.in_script(name, value)
    if phase == "process":
        return Applied(setting=name, before=None, after=value, status="applied", why=AFTER_TORCH)
    exported = applied.exported(name, value, environ)
    return exported or Applied(setting=name, before=None, after=value, status="applied", why=_named(name, value))


def _shared(row: Applied) -> Applied:
    if row.status != "applied" or settings.load(row.setting).PHASE != "launch":
        return row
    return applied.skipped(row.setting, "the command starts several processes, which share the CPUs")


def _named(name: str, value: Value) -> str:
    return ", ".join(f"{variable}={text}" for variable, text in settings.load(name).environ(value).items())


def _variables(done: Mapping[str, Value], environ: Mapping[str, str]) -> dict[str, str]:
    wanted: dict[str, str] = {}
    for name, value in done.items():
        if settings.load(name).PHASE == "launch":
            wanted |= settings.load(name).environ(value)
    return {variable: text for variable, text in wanted.items() if variable not in environ}


def _payload(done: Mapping[str, Value]) -> str:
    values = {name: value for name, value in done.items() if settings.load(name).PHASE == "process"}
    return json.dumps(values, sort_keys=True, separators=(",", ":")) if values else ""


def _python_path(theirs: str) -> str:
    """The shim, then the user's own path as it was. An empty element means the working folder: none is made here."""
    if not theirs:
        return SHIM
    return os.pathsep.join([SHIM, *(entry for entry in theirs.split(os.pathsep) if entry != SHIM)])
