"""The answer of `_status_answers.py` held against its types: any program may be named as an interpreter, and answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as filled
from typing import Any

from gputune import settings
from gputune.inject.applied import Applied, Source, Status
from gputune.settings import Value
from gputune.strict_types import Mismatch, convert

OPERATIONS = {
    "matmul": "matmul_precision",
    "conv": "cudnn_tf32",
    "conv channels_last": "cudnn_tf32",
    "lstm": "cudnn_tf32",
}
"""Operation to the setting that is supposed to decide its precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    reason: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """As `Applied.plain`."""

    setting: str
    before: Value
    after: Value
    status: Status
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
        _check_words(row)
    unknown = [name for name in held.reads if name not in settings.names()]
    unknown += [name for name in held.errors if OPERATIONS.get(name) not in held.reads]
    if unknown:
        raise Mismatch(f"{unknown[0][:40]}: there is no such setting or operation")


def _check_words(row: Mapping[str, Any]) -> None:
    try:
        _ = Applied.from_plain(row).why
    except LookupError:  # a reason with fewer arguments than its sentence has places
        raise Mismatch(f"{row['setting'][:40]}: a reason without its arguments") from None
