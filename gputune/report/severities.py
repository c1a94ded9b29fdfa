"""The order of severities, the worst of several, and what a whole check comes to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gputune.checks import Finding, Severity

FailOn = Literal["error", "warning", "unknown", "never"]

WORST_FIRST: tuple[Severity, ...] = ("ERROR", "WARNING", "UNKNOWN", "OK", "NOT_APPLICABLE")
FAIL_ON: dict[FailOn, tuple[Severity, ...]] = {
    "error": ("ERROR",),
    "warning": ("ERROR", "WARNING"),
    "unknown": ("ERROR", "WARNING", "UNKNOWN"),
    "never": (),
}
"""The severities that make the command fail, by what `--fail-on` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a whole check comes to, to be alerted on. Each check counts once, with the worst that it found."""

    checks: int
    """How many checks were asked."""
    severities: dict[Severity, int]
    """How many of them there are of each severity; every severity is there, also with 0."""
    worst: Severity
    """The worst that any of them found, in the order ERROR, WARNING, UNKNOWN, OK, NOT_APPLICABLE."""
    fail_on: FailOn
    """The level from which on the command fails, as `--fail-on` named it."""
    exit_code: int
    """1 where a finding reaches that level, else 0. A fault of the command itself has another exit code."""


def worst(pairs: Iterable[tuple[str, Severity]]) -> dict[str, Severity]:
    """The worst severity for each name, in the order in which the names first occur."""
    by_name: dict[str, Severity] = {}
    for name, severity in pairs:
        by_name[name] = min(by_name.get(name, severity), severity, key=WORST_FIRST.index)
    return by_name


def summary(findings: Iterable[Finding], fail_on: FailOn) -> Summary:
    """What these findings come to where the command fails from `fail_on` up."""
    each = list(worst((finding.check, finding.severity) for finding in findings).values())
    return Summary(
        checks=len(each),
        severities={severity: each.count(severity) for severity in WORST_FIRST},
        worst=min(each, key=WORST_FIRST.index, default="NOT_APPLICABLE"),
        fail_on=fail_on,
        exit_code=int(any(severity in FAIL_ON[fail_on] for severity in each)),
    )
