"""The order of severities, the worst of several, what a whole check comes to, and equal findings merged into one."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gputune.checks import Finding, Severity
from gputune.facts import cpu_list
from gputune.facts.gap import Gap

_NVIDIA_SMI = re.compile(r"(?:(?<=nvidia-smi -i )|(?<=nvidia-smi mig -i ))[^\s;]+")  # the GPU in a remedy's command
FailOn = Literal["error", "warning", "unknown", "never"]

WORST_FIRST: tuple[Severity, ...] = ("ERROR", "WARNING", "UNKNOWN", "OK", "NOT_APPLICABLE")
FAIL_ON: dict[FailOn, tuple[Severity, ...]] = {
    "error": WORST_FIRST[:1], "warning": WORST_FIRST[:2], "unknown": WORST_FIRST[:3], "never": (),
}  # fmt: skip
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
    each = list(worst((finding.check, finding.severity) for finding in findings).values())
    return Summary(
        checks=len(each),
        severities={severity: each.count(severity) for severity in WORST_FIRST},
        worst=min(each, key=WORST_FIRST.index, default="NOT_APPLICABLE"),
        fail_on=fail_on,
        exit_code=int(any(severity in FAIL_ON[fail_on] for severity in each)),
    )


def merged(findings: Sequence[Finding]) -> list[tuple[str, str, str | None]]:
    """Names, message and remedy of equal findings: of one check about several GPUs, then of several checks."""
    of_gpus: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        of_gpus.setdefault((one.check, one.message, _NVIDIA_SMI.sub("", one.remedy or "")), []).append(one)
    of_checks: dict[tuple[str, str | None], list[str]] = {}
    for (check, message, _), same in of_gpus.items():
        said = (f"{_gpus([one.subject or '' for one in same])}{message}", _remedy([one.remedy or "" for one in same]))
        of_checks.setdefault(said, []).append(check)
    return [
        (checks[0], message, remedy)
        if len(checks) == 1
        else (f"{len(checks)} checks", f"{message} ({', '.join(checks)})", remedy)
        for (message, remedy), checks in of_checks.items()
    ]


def by_reason(gaps: Iterable[Gap]) -> dict[str, list[str]]:
    """The names of the facts that are missing for each reason."""
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        reasons.setdefault(gap.reason, []).append(gap.fact)
    return reasons


def _remedy(remedies: Sequence[str]) -> str | None:
    """One remedy for several GPUs, of which nvidia-smi takes a list."""
    gpus = list(dict.fromkeys(found for remedy in remedies for found in _NVIDIA_SMI.findall(remedy)))
    return _NVIDIA_SMI.sub(",".join(gpus), remedies[0]) or None


def _gpus(subjects: Sequence[str]) -> str:
    """The prefix `GPU 0-3,7: ` for the GPUs among the subjects; messages name other subjects themselves."""
    numbers = [int(subject.removeprefix("GPU ")) for subject in subjects if re.fullmatch(r"GPU \d{1,4}", subject)]
    return f"GPU {cpu_list.text(numbers)}: " if numbers else ""
