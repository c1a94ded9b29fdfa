"""What the checks found, the worst first, with remedies to copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputune.checks import Finding, Severity
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
    return element("ul", *map(_one, findings), class_="findings")


def _one(finding: Finding) -> Markup:
    word = element("span", finding.severity.lower().replace("_", " "), class_=f"tag {finding.severity.lower()}")
    subject = f" {finding.subject}:" if finding.subject else ""
    return element(
        "li",
        element("p", word, " ", element("b", finding.check), subject, " ", finding.message),
        remedy(finding.remedy) if finding.remedy else "",
    )
