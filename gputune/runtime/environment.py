"""Turns a profile into a command's environment: variables, the payload for the shim, and a row for every choice.

Pure: an environment goes in as a mapping and comes out as a dictionary or as lines for a shell. Without a limit on
numerics nothing beyond TF32 takes effect by itself: settings that affect results more (mixed precision) need a line in
the script, and by writing it the user agrees.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from gputune import live
from gputune.advice._evidence import first
from gputune.advice.omp_threads import started_with
from gputune.errors import UsageError
from gputune.knobs import LEVELS, Knob, Numerics, Value, load, name_of
from gputune.live import payload
from gputune.live.advice import Advice
from gputune.live.applied import Applied, Reason
from gputune.profile import Fingerprint, Profile
from gputune.resources.printable import quoted
from gputune.runtime import advising, deciding
from gputune.runtime.deciding import Terms, is_shared
from gputune.runtime.launch import disabled

VARIABLE = "GPUTUNE_NUMERICS"
"""The limit for this process and all its children; `gputune apply --numerics` sets it."""


def limit(requested: str | None, environ: Mapping[str, str]) -> Numerics | None:
    """The lower of the requested limit and the environment's. Raises UsageError for an unknown level."""
    limits = [_level(word, name) for name, word in (("numerics", requested), (VARIABLE, environ.get(VARIABLE))) if word]
    return min(limits, key=LEVELS.index, default=None)


def tf32_line(profile: Profile, applied: Mapping[Knob, Value]) -> str:
    """The line for a user who set no limit and gets TF32; empty where the profile does not turn on TF32 for matmuls."""
    if not profile.fingerprint.gpu or applied.get(load("matmul_precision")) != "tf32":
        return ""
    error = first(profile.measurements, "precision", "relative_error", dtype="tf32")
    tf32 = f"TF32 with a relative error of {error.median:.1e}, as measured" if error else "TF32"
    return f"FP32 matmul runs in {tf32}; --numerics rounding avoids it, --numerics tf32 accepts it without this line"


def _level(word: str, name: str) -> Numerics:
    if word not in LEVELS:
        raise UsageError(f"{name}: {word!r} is not a level", f"choose from {', '.join(LEVELS)}")
    return word


THREADS = "omp_threads"
SHIM = str(Path(live.__file__).with_name("shim"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a profile is applied to a command."""

    environ: dict[str, str]
    """The variables to add: the launch settings', and the limit on numerics."""
    payload: str
    """The values that the shim sets, or reads back where they were exported; empty where there are none."""
    applied: tuple[Applied, ...]
    gpu: bool = True
    """Whether the profile was measured on a GPU."""
    advice: Advice | None = None
    """The values that are put into the models of the program; None where nothing is."""
    waiting: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """By kind of network, what would be put in if the user asked for it."""
    tuned_elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By program that was tuned on another machine, the differences."""
    tuned_beyond: tuple[str, ...] = ()
    """The settings of tuned programs that the limit on numerics leaves out."""
    no_room: tuple[str, ...] = ()
    """The oldest tuned programs, for which `GPUTUNE_APPLY` has no room."""
    tf32_line: str = ""
    """The notice that TF32 is on, for a user who set no limit; empty where there is no need for it."""

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The settings that are skipped because they were measured on a different machine."""
        return self._because(Reason.ELSEWHERE)

    @property
    def differences(self) -> tuple[str, ...]:
        """How the machines differ: `torch (2.11.0 there, 2.12.0 here)`."""
        return tuple(dict.fromkeys(chain.from_iterable(row.because(Reason.ELSEWHERE) or () for row in self.applied)))

    @property
    def defeated(self) -> tuple[str, ...]:
        """The settings that NVIDIA_TF32_OVERRIDE overrules."""
        return self._because(Reason.TF32_FORBIDDEN, Reason.TF32_FORCED) if self.gpu else ()

    @property
    def left_out(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._because(Reason.BEYOND_NUMERICS), *self.tuned_beyond)))

    def _because(self, *reasons: Reason) -> tuple[str, ...]:
        return tuple(row.setting for row in self.applied if row.because(*reasons) is not None)


def plan(profile: Profile, here: Fingerprint, environ: Mapping[str, str], terms: Terms | None = None) -> Plan:
    """Decide about every setting of the profile. A variable that is already in `environ` is the user's and stays."""
    terms = terms or Terms()
    chosen = choices(profile, here, terms)
    ours = payload.exported_by_us(environ)
    rows = {
        setting: deciding.refused(setting, one.value, one.differences, environ, terms)
        or one.noted(deciding.for_command(setting, one.value, environ, ours, terms))
        for setting, one in chosen.items()
    }
    done = {setting: one.value for setting, one in chosen.items() if rows[setting].status == "applied"}
    there = None if terms.ignore_fingerprint else profile.fingerprint.torch
    off = disabled(environ)
    wanted = Advice(device="") if off else advising.advice(profile, here, terms)
    elsewhere = {} if off else advising.elsewhere(profile, here, terms)
    given, text = _carried(done, there, wanted, elsewhere)
    return Plan(
        environ=_variables(done, environ, ours, terms) | ({VARIABLE: terms.numerics} if terms.numerics else {}),
        payload=text,
        applied=tuple(put_in(knob, deciding.with_override(knob, row, environ), given) for knob, row in rows.items()),
        advice=given,
        waiting={} if off else advising.waiting(profile, here, terms),
        tuned_elsewhere=elsewhere,
        tuned_beyond=() if off else advising.beyond(profile, here, terms),
        no_room=tuple(one.entry for one in wanted.programs[len(given.programs) :]),
        gpu=profile.fingerprint.gpu is not None,
        # Not repeated below an apply with the same values.
        tf32_line="" if terms.numerics or environ.get(payload.VARIABLE) == text else tf32_line(profile, done),
    )


def differences(profile: Profile, setting: Knob, here: Fingerprint, terms: Terms) -> list[str]:
    """How this machine differs in what a setting's choice depends on; empty where differences are to be ignored."""
    return [] if terms.ignore_fingerprint else profile.fingerprint.differences(here, setting.DEPENDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The value of one setting for a process of this machine."""

    value: Value
    differences: Sequence[str] = ()
    notes: tuple[str, ...] = ()
    """Why it is not the profile's."""

    def noted(self, row: Applied) -> Applied:
        return row.and_because(*self.notes) if row.status == "applied" else row


def choices(profile: Profile, here: Fingerprint, terms: Terms) -> dict[Knob, Chosen]:
    """The values for a process of this machine: the profile's, but a number of threads by the CPUs that are here."""
    chosen = {
        (knob := load(name)): Chosen(value=choice.value, differences=differences(profile, knob, here, terms))
        for name, choice in profile.settings.items()
    }
    if threads := _threads(profile, here, terms):
        note = f"as many as this process has CPUs, where torch would start {terms.own_threads}"
        chosen[load(THREADS)] = Chosen(value=threads, notes=(note,))
    return chosen


def _threads(profile: Profile, here: Fingerprint, terms: Terms) -> int | None:
    """The number of CPUs where torch would start more threads than that. None where it would not, and where the profile
    holds a number within it, or measured with so many CPUs that torch's own is faster.
    """
    own, cpus, choice = terms.own_threads, here.cpu_budget, profile.settings.get(THREADS)
    if own is None or cpus is None or own <= cpus:
        return None
    is_from_here = not profile.fingerprint.differences(here, load(THREADS).DEPENDS)
    if choice is None or not (is_from_here or terms.ignore_fingerprint):
        return cpus
    if choice.value is None:
        return None if is_from_here and started_with(profile.measurements) == own else cpus
    return cpus if terms.ranks or not isinstance(choice.value, int) or choice.value > cpus else None


def _carried(
    done: Mapping[Knob, Value], torch: str | None, given: Advice, elsewhere: Mapping[str, tuple[str, ...]]
) -> tuple[Advice, str]:
    """The payload's text, and the advice in it. What only messages need is left out first where there is no room, then
    the oldest of the tuned programs.
    """
    text = payload.of(done, torch, given, elsewhere).text
    bare, count = tuple(replace(one, layers=()) for one in given.programs), len(given.programs)
    while len(text) > payload.MOST_BYTES and count >= 0:
        given, count = replace(given, programs=bare[:count]), count - 1
        text = payload.of(done, torch, given).text
    return given, text


def put_in(setting: Knob, row: Applied, advice: Advice) -> Applied:
    """The row of a setting that is turned on in models or DataLoaders, once the program runs."""
    name = name_of(setting)
    if advice.loading is not None and name in advice.loading.choices:
        reasons = ("put into each DataLoader that was given no workers",)
        return replace(row, after=advice.loading.choices[name], status="applied", reasons=reasons)
    values = next((one for one in (advice.general, *advice.families.values()) if name in one), None)
    if values is None:
        return row
    reasons = ("put into each model in its first steps, as measured for its kind",)
    return replace(row, after=values[name], status="applied", source="profile", reasons=reasons)


def child(planned: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """The command's whole environment: `environ`, the additions, the payload, and the shim first on PYTHONPATH."""
    whole = {**environ, **planned.environ}
    whole.pop(payload.VARIABLE, None)  # of an enclosing apply, whose profile this one replaces
    if planned.payload:
        whole[payload.VARIABLE] = planned.payload
        whole["PYTHONPATH"] = python_path(environ.get("PYTHONPATH", ""))
    return whole


def task_prolog(planned: Plan, environ: Mapping[str, str]) -> str:
    """The lines that a Slurm TaskProlog prints to change the environment of its task.

    Slurm takes everything after `export NAME=` literally: values are not quoted, and PYTHONPATH is written in full
    because it cannot refer to its old value. Raises UsageError for a line break in a value, and for whatever else
    cannot be seen.
    """
    whole = child(planned, environ)
    changed = {name: value for name, value in whole.items() if environ.get(name) != value}
    if broken := [name for name, value in changed.items() if not value.isprintable()]:
        what = "a line break" if "\n" in changed[broken[0]] else "a character that cannot be seen"
        raise UsageError(f"{broken[0]} contains {what}, which a TaskProlog cannot pass on", "unset it first")
    lines = [f"export {name}={value}" for name, value in sorted(changed.items())]
    return "".join(f"{line}\n" for line in [*lines, *(f"unset {name}" for name in environ if name not in whole)])


def exports(planned: Plan) -> str:
    """Lines for a POSIX shell. Evaluating them twice does no more than once."""
    lines = [f"export {name}={quoted(value)}" for name, value in sorted(planned.environ.items())]
    if planned.payload:
        shim = quoted(SHIM)
        lines.append(f"export {payload.VARIABLE}={quoted(planned.payload)}")
        prepend = f'export PYTHONPATH={shim}"${{PYTHONPATH:+:$PYTHONPATH}}"'
        lines.append(f'case "${{PYTHONPATH-}}:" in {shim}:*) ;; *) {prepend} ;; esac')
    else:
        lines.append(f"unset {payload.VARIABLE}")
    return "".join(f"{line}\n" for line in lines)


def digest(environ: Mapping[str, str]) -> str | None:
    """Identifies what was applied in this environment by 16 hexadecimal digits of SHA-256, over the values for the shim
    and the current values of the variables that gputune exported. Ranks with equal digests start alike. None where
    nothing was applied.
    """
    import hashlib
    import json

    if not payload.handed_down(environ).text or disabled(environ):
        return None
    variables = {name: environ.get(name) for name in payload.exported_by_us(environ)}
    text = json.dumps([json.loads(environ[payload.VARIABLE]), variables], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _variables(
    done: Mapping[Knob, Value], environ: Mapping[str, str], ours: Mapping[str, str], terms: Terms
) -> dict[str, str]:
    """The launch settings' variables, except those in `environ` that are the user's and not an enclosing apply's, and
    those of which each of several ranks has its share.
    """
    exported = {knob: value for knob, value in done.items() if not (terms.ranks and is_shared(knob))}
    return {
        name: text
        for name, text in payload.variables(exported).items()
        if name not in environ or environ[name] == ours.get(name) != text
    }


def python_path(users: str) -> str:
    """The shim, then the user's own path unchanged. No empty element is added: it would mean the working folder."""
    if not users:
        return SHIM
    return os.pathsep.join([SHIM, *(entry for entry in users.split(os.pathsep) if entry != SHIM)])
