"""The settings of a Python started in this environment: their values, who chose them, and what took effect."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as filled
from pathlib import Path
from typing import Any

from gputune import knobs
from gputune.advice.matmul_precision import TF32_ERROR
from gputune.errors import MeasureError
from gputune.host import Host, Unreadable
from gputune.knobs import Value
from gputune.live import payload
from gputune.live.applied import TF32_OVERRIDE, Applied, Source, Why
from gputune.live.applied import Status as Outcome
from gputune.runtime.deciding import not_set_here
from gputune.runtime.environment import digest
from gputune.runtime.launch import disabled
from gputune.strict_types import Mismatch, convert

_CUDNN = "cudnn_tf32"
OPERATIONS = {"matmul": "matmul_precision", "conv": _CUDNN, "conv channels_last": _CUDNN, "lstm": _CUDNN}
"""Operation to the setting that is supposed to decide its precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """As `Applied.plain`."""

    setting: str
    before: Value
    after: Value
    status: Outcome
    source: Source | None
    why: str
    reasons: tuple[Why, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A setting's value and default, or the fault for which it has none."""

    value: Value = None
    default: Value = None
    fault: Row | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    torch: str
    python: str
    gpu: str | None
    tf32: bool
    rows: tuple[Row, ...]
    reads: dict[str, _Read]
    errors: dict[str, float] = filled(default_factory=dict)


def check(answer: Mapping[str, Any]) -> None:
    """Raises Mismatch for an answer that a report could not print."""
    held: _Answer = convert(_Answer, answer)
    faults = [read["fault"] for read in answer["reads"].values() if "fault" in read]
    for row in (*answer["rows"], *faults):
        try:
            _ = Applied.from_plain(row).why
        except LookupError:  # a reason with fewer arguments than its sentence has places
            raise Mismatch(f"{row['setting'][:40]}: a reason without its arguments") from None
    unknown = [name for name in held.reads if name not in knobs.names()]
    unknown += [name for name in held.errors if OPERATIONS.get(name) not in held.reads]
    if unknown:
        raise Mismatch(f"{unknown[0][:40]}: there is no such setting or operation")


SCRIPT = Path(__file__).with_name("_status_answers.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """One FP32 operation: the precision its setting promises, and whether its numerical error confirms it."""

    operation: str
    setting: str
    value: Value
    relative_error: float
    took_effect: bool | None
    """None where the GPU has no TF32, so that the setting has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStatus:
    """A tuned program of the profile that is in force. Whether a process is this program shows in its models alone."""

    entry: str
    settings: tuple[str, ...]
    """What is applied to it, as far as is known before it runs."""
    differences: tuple[str, ...]
    """How the machine, or the torch, that it was tuned with differs, for which not all that was tuned is applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The settings of a process that imported torch in this environment."""

    torch: str
    python: str
    gpu: str | None
    settings: tuple[Applied, ...]
    verified: tuple[Verified, ...] = ()
    override: str | None = None
    """The value of NVIDIA_TF32_OVERRIDE, which overrules the flags; None where it is unset."""
    digest: str | None = None
    """Identifies what was applied in this environment, to be compared across ranks; None where nothing was applied."""
    programs: tuple[ProgramStatus, ...] = ()


def ask(host: Host, verify: bool = False) -> Status:
    """Start the host's Python in this environment and ask it. Raises MeasureError where it cannot answer."""
    try:
        answer = host.ask_tuned(SCRIPT, *(["verify"] if verify else []))
    except Unreadable as error:
        raise MeasureError(str(error), "name an interpreter with --python") from None
    if isinstance(answer.get("fault"), str):
        raise MeasureError(f"{host.python}: {answer['fault']}", "name an interpreter that has torch with --python")
    try:
        check(answer)
    except Mismatch as mismatch:
        why = f"{host.python} answered something else: {mismatch}"
        raise MeasureError(why, "name a Python with --python") from None
    found = from_answer(answer, host.environ.get(TF32_OVERRIDE))
    return replace(found, digest=digest(host.environ), programs=programs(host.environ, found.torch))


def programs(environ: Mapping[str, str], torch: str) -> tuple[ProgramStatus, ...]:
    """The tuned programs of the profile that is applied in this environment, in a process with this torch."""
    if disabled(environ):
        return ()
    carried = payload.handed_down(environ)
    differences = {name: list(how) for name, how in carried.elsewhere.items()}
    found: dict[str, list[str]] = {name: [] for name in differences}
    for one in carried.advice.programs if carried.advice else ():
        found.setdefault(one.entry, []).extend([*(one.loading.choices if one.loading else ()), *one.settings])
        if one.torch not in (None, torch):
            differences.setdefault(one.entry, []).append(f"torch ({one.torch} there, {torch} here)")
    return tuple(
        ProgramStatus(entry=name, settings=tuple(settings), differences=tuple(differences.get(name, ())))
        for name, settings in found.items()
    )


def from_answer(answer: Mapping[str, Any], override: str | None) -> Status:
    """The status from an answer of `_status_answers.py`."""
    rows = {row["setting"]: Applied.from_plain(row) for row in answer["rows"]}
    reads, errors = answer["reads"], answer.get("errors", {}).items()
    values = {name: row.after for name, row in rows.items()} | {name: read.get("value") for name, read in reads.items()}
    return Status(
        torch=answer["torch"],
        python=answer["python"],
        gpu=answer["gpu"],
        settings=tuple(rows.get(name) or _untouched(name, read) for name, read in reads.items()),
        verified=tuple(_verified(name, error, values, answer["tf32"]) for name, error in errors),
        override=override,
    )


def _untouched(name: str, read: Mapping[str, Any]) -> Applied:
    if "fault" in read:
        return Applied.from_plain(read["fault"])
    return not_set_here(knobs.load(name), read["value"], read["default"])


def _verified(operation: str, error: float, values: Mapping[str, Value], has_tf32: bool) -> Verified:
    setting = OPERATIONS[operation]
    promised = values[setting] in ("tf32", True)
    took_effect = promised == (error >= TF32_ERROR) if has_tf32 else None
    return Verified(
        operation=operation, setting=setting, value=values[setting], relative_error=error, took_effect=took_effect
    )
