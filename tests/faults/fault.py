"""What a fault is, what is expected of it, and whether the checks answer so."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from faults.machines import EMULATES_BFLOAT16, Machine, machine

from gputune.checks import Finding

COMPLAINTS = ("WARNING", "ERROR")
Inject = Callable[[Machine], Any]
Subject = str | None


@dataclass(frozen=True)
class Expect:
    """One finding. Where two checks, severities or subjects are equally right, they are joined by `|`."""

    check: str
    severity: str
    subjects: tuple[Subject, ...]
    remedy: str = ""
    """A pattern that its remedy must have."""
    no_remedy: str = ""
    """A pattern that its remedy must not have."""

    def met_by(self, finding: Finding) -> bool:
        return (
            finding.check in self.check.split("|")
            and finding.severity in self.severity.split("|")
            and finding.subject in self.subjects
        )

    def right_remedy(self, finding: Finding) -> bool:
        text = finding.remedy or ""
        wanted = not self.remedy or re.search(self.remedy, text)
        return bool(wanted) and not (self.no_remedy and re.search(self.no_remedy, text))


@dataclass(frozen=True)
class Fault:
    """A change of one thing on a healthy machine, and the answer that is right by its source."""

    name: str
    kind: str
    inject: Inject
    expected: tuple[Expect, ...]
    source: str
    also: tuple[str, ...] = ()
    """Other checks that may complain, since what they ask about follows of necessity."""
    touches: tuple[str, ...] = ()
    """What it changes, so that two faults of the same thing are not put into one machine."""
    subject: str = ""
    """The chapter of the table it stands in."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"

    def machine(self) -> Machine:
        made = machine(self.kind)
        self.inject(made)
        return made


def fault(  # noqa: PLR0917 - a row of the table
    name: str, kind: str, inject: Inject, check: str, severity: str, subjects: Any, source: str, **more: Any
) -> Fault:
    """One of which one finding is expected, about one subject or any of several; `more` are fields of both."""
    remedy = {key: more.pop(key) for key in ("remedy", "no_remedy") if key in more}
    expected = Expect(check, severity, subjects if isinstance(subjects, tuple) else (subjects,), **remedy)
    return Fault(name, kind, inject, (expected,), source, **{"touches": ("*",), **more})


def on_each(kinds: str, make: Callable[..., Fault], name: str, *row: Any, **more: Any) -> list[Fault]:
    """The same row of the table on machines of several kinds, whose names are divided by blanks."""
    return [make(name, kind, *row, **more) for kind in kinds.split()]


@dataclass
class Verdict:
    found: bool = True
    """Each expected finding's check complains (or, where UNKNOWN is expected, says so)."""
    right: bool = True
    """... with the right severity and subject."""
    false_alarms: list[Finding] = field(default_factory=list)
    wrong_gpu: list[Finding] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return self.found and self.right and not self.false_alarms and not self.wrong_gpu


def standing(made: str, findings: Iterable[Finding]) -> list[Finding]:
    """The complaints beyond those that a machine's kind has even in perfect health."""
    by_nature = ("bf16_emulated",) if made in EMULATES_BFLOAT16 else ()
    return [one for one in findings if one.severity in COMPLAINTS and one.check not in by_nature]


def shown(finding: Finding) -> str:
    return f"{finding.check} {finding.severity} {finding.subject}: {finding.message[:140]}"


def judge(faults: tuple[Fault, ...], findings: tuple[Finding, ...]) -> Verdict:
    """Hold the findings on a machine that has these faults, one or a pair, against what is expected of them."""
    verdict = Verdict()
    expected = [one for fault in faults for one in fault.expected]
    also = {check for fault in faults for check in fault.also}
    kind = faults[0].kind
    complaints = standing(kind, findings) + [one for one in findings if "the check failed" in one.message]
    for one in expected:
        asked = [finding for finding in findings if finding.check in one.check.split("|")]
        met = [finding for finding in asked if one.met_by(finding)]
        loud = [finding for finding in asked if finding.severity in (*COMPLAINTS, *one.severity.split("|"))]
        verdict.found &= bool(met or loud)
        verdict.right &= any(one.right_remedy(finding) for finding in met)
        if not met or not any(one.right_remedy(finding) for finding in met):
            verdict.said += [shown(finding) for finding in asked] or [f"no check named {one.check}"]
            verdict.said += [f"  remedy: {finding.remedy}" for finding in met]
    named = {subject for one in expected for subject in one.subjects if subject}
    checks = {check for one in expected for check in one.check.split("|")}
    for finding in complaints:
        other_gpu = _names_a_gpu(finding) and finding.subject not in named
        if any(one.met_by(finding) for one in expected) or (finding.check in also and not other_gpu):
            continue
        if finding.check in checks and finding.subject in named:
            continue  # the right check about the right thing, with another severity: counted above
        (verdict.wrong_gpu if other_gpu else verdict.false_alarms).append(finding)
    verdict.said += [f"beyond it: {shown(finding)}" for finding in verdict.false_alarms + verdict.wrong_gpu]
    return verdict


def _names_a_gpu(finding: Finding) -> bool:
    return bool(re.fullmatch(r"GPU \d+", finding.subject or ""))
