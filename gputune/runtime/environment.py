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

from gputune import inject, settings
from gputune.errors import UsageError
from gputune.profile import Fingerprint, Profile
from gputune.runtime import applied, numerics
from gputune.runtime.applied import NOTHING_SAID, PAYLOAD, Applied, Terms
from gputune.settings import Value

__all__ = ["SHIM", "Applied", "Plan", "Terms", "child", "exports", "plan", "task_prolog"]

SHIM = str(Path(inject.__file__).with_name("shim"))
AFTER_TORCH = "right after import torch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What applying a profile to a command comes to."""

    environ: dict[str, str]
    """Variables to add: those of the launch settings."""
    payload: str
    """What the shim is to apply, and what is exported and it is to read back, as canonical JSON of at most 4 KiB; empty where there is
    nothing."""
    applied: tuple[Applied, ...]
    elsewhere: tuple[str, ...] = ()
    """The settings that are skipped because this machine differs from the one that was measured."""
    differences: tuple[str, ...] = ()
    """In what it differs, in words."""
    defeated: tuple[str, ...] = ()
    """The settings that NVIDIA_TF32_OVERRIDE makes ineffective."""
    left_out: tuple[str, ...] = ()
    """The settings that go further in what they do to results than the user allows."""
    numerics: str = ""
    """What a user is told who did not say how far results may change; empty where it is nothing new."""


def plan(
    profile: Profile,
    here: Fingerprint,
    environ: Mapping[str, str],
    terms: Terms = NOTHING_SAID,
) -> Plan:
    """Decide about every setting of the profile. A variable that `environ` holds already is the user's, and stays."""
    chosen = {name: choice.value for name, choice in profile.settings.items()}
    differing = {name: applied.differences(profile, name, here, terms) for name in chosen}
    rows = [_row(name, value, applied.refusal(name, value, differing[name], environ, terms), environ)
            for name, value in chosen.items()]  # fmt: skip
    if terms.ranks:
        rows = [_shared(row) for row in rows]
    done = {row.setting: chosen[row.setting] for row in rows if row.status == "applied"}
    elsewhere = [row.setting for row in rows if row.why.startswith(applied.ELSEWHERE)]
    payload = _payload(done, None if terms.ignore_fingerprint else profile.fingerprint.torch)
    return Plan(
        environ=_variables(done, environ, terms),
        payload=payload,
        applied=tuple(applied.with_defeat(row, environ) for row in rows),
        elsewhere=tuple(elsewhere),
        differences=tuple(dict.fromkeys(words for name in elsewhere for words in differing[name])),
        defeated=tuple(
            name for name, value in done.items() if profile.fingerprint.gpu and applied.defeat(name, value, environ)
        ),
        left_out=tuple(row.setting for row in rows if row.why.startswith(numerics.LEFT_OUT)),
        numerics=_unasked(profile, done, payload, environ, terms),
    )


def child(planned: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """The whole environment for the command: `environ`, the additions, the payload, and the shim first on PYTHONPATH."""
    whole = {**environ, **planned.environ}
    whole.pop(PAYLOAD, None)  # of an apply further out: this profile replaces that one
    if planned.payload:
        whole[PAYLOAD] = planned.payload
        whole["PYTHONPATH"] = _python_path(environ.get("PYTHONPATH", ""))
    return whole


def task_prolog(planned: Plan, environ: Mapping[str, str]) -> str:
    """The same as a Slurm TaskProlog prints it, for the environment of this very task.

    Slurm takes what follows `export NAME=` to the end of the line as it stands: nothing is quoted, and nothing can be put before a
    variable that is there, so that PYTHONPATH is given whole. Raises UsageError for a line break in a value.
    """
    whole = child(planned, environ)
    changed = {name: value for name, value in whole.items() if environ.get(name) != value}
    if broken := [name for name, value in changed.items() if "\n" in value]:
        raise UsageError(f"{broken[0]} holds a line break, which a TaskProlog cannot hand on", "unset it before")
    lines = [f"export {name}={value}" for name, value in sorted(changed.items())]
    return "".join(f"{line}\n" for line in [*lines, *(f"unset {name}" for name in environ if name not in whole)])


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


def _row(name: str, value: Value, refusal: str | None, environ: Mapping[str, str]) -> Applied:
    phase = settings.load(name).PHASE
    if refusal:
        return applied.skipped(name, refusal)
    if phase == "code":
        return applied.in_script(name, value)
    exported = applied.exported(name, value, environ) if phase == "launch" else None
    why = AFTER_TORCH if phase == "process" else _named(name, value)
    return exported or Applied(setting=name, before=None, after=value, status="applied", source="profile", why=why)


def _shared(row: Applied) -> Applied:
    if row.status != "applied" or settings.load(row.setting).PHASE != "launch":
        return row
    return applied.skipped(row.setting, "the command starts several processes, which share the CPUs")


def _named(name: str, value: Value) -> str:
    return ", ".join(f"{variable}={text}" for variable, text in settings.load(name).environ(value).items())


def _unasked(
    profile: Profile, done: Mapping[str, Value], payload: str, environ: Mapping[str, str], terms: Terms
) -> str:
    """The line about TF32, once: not below an apply with the same values."""
    tf32 = profile.fingerprint.gpu and done.get("matmul_precision") == "tf32"
    return numerics.tf32_line(profile) if tf32 and not terms.numerics and environ.get(PAYLOAD) != payload else ""


def _variables(done: Mapping[str, Value], environ: Mapping[str, str], terms: Terms) -> dict[str, str]:
    """Those of the launch settings, and the limit, which holds for what a script below applies too."""
    limit: dict[str, str] = {numerics.VARIABLE: terms.numerics} if terms.numerics else {}
    wanted: dict[str, str] = {}
    for name, value in done.items():
        if settings.load(name).PHASE == "launch":
            wanted |= settings.load(name).environ(value)
    ours = applied.by_an_outer_apply(environ)
    new = {
        name: text for name, text in wanted.items() if name not in environ or environ[name] == ours.get(name) != text
    }
    return new | limit


def _payload(done: Mapping[str, Value], torch: str | None) -> str:
    """With the `torch` that was measured, where a value rests on it: the command may have another than gputune has."""
    values = {name: value for name, value in done.items() if settings.load(name).PHASE != "code"}
    if torch and any("torch" in settings.load(name).DEPENDS for name in values):
        values["torch"] = torch
    return json.dumps(values, sort_keys=True, separators=(",", ":")) if values else ""


def _python_path(theirs: str) -> str:
    """The shim, then the user's own path as it was. An empty element means the working folder: none is made here."""
    if not theirs:
        return SHIM
    return os.pathsep.join([SHIM, *(entry for entry in theirs.split(os.pathsep) if entry != SHIM)])
