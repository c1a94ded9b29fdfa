"""What the checks found, the worst first, with remedies to copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputune.checks import Finding, Severity
from gputune.report.merging import merged
from gputune.report.page.commands import remedy
from gputune.report.page.figures import folded
from gputune.report.page.markup import Markup, element
from gputune.report.severities import WORST_FIRST

OPEN = ("ERROR", "WARNING", "UNKNOWN")

WORDS: dict[Severity, str] = {
    "ERROR": "Errors",
    "WARNING": "Warnings",
    "UNKNOWN": "Unknown",
    "OK": "OK",
    "NOT_APPLICABLE": "Not applicable",
}


def section(findings: Sequence[Finding]) -> Iterator[Markup]:
    """Those that ask for something; the others can be unfolded."""
    for severity in WORST_FIRST:
        found = [one for one in findings if one.severity == severity]
        if not found:
            continue
        title = f"{WORDS[severity]}: {len(found)}"
        if severity in OPEN:
            yield element("h3", title)
            yield listed(found)
        else:
            yield folded(title, listed(found), kind="quiet")
    if not findings:
        yield element("p", "This profile has no findings.")


def listed(findings: Sequence[Finding]) -> Markup:
    """As on a terminal, what is the same of several GPUs or checks is said once."""
    by_severity = {severity: [one for one in findings if one.severity == severity] for severity in WORST_FIRST}
    lines = (_line(severity, *said) for severity, found in by_severity.items() for said in merged(found))
    return element("ul", *lines, class_="findings")


def _line(severity: Severity, checks: str, message: str, remedies: str | None) -> Markup:
    word = element("span", severity.lower().replace("_", " "), class_=f"tag {severity.lower()}")
    said = element("p", word, " ", element("b", checks), " ", message)
    return element("li", said, remedy(remedies) if remedies else "")
