"""JSON holds the dataclasses as they are, except that no text tells who and where, below what an alert asks first."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from recorded import facts_of

from gputune import checks
from gputune.checks import Finding
from gputune.facts import Facts
from gputune.report import json as out
from gputune.report.json import CheckAnswer, StatusAnswer
from gputune.report.severities import FailOn, summary
from gputune.runtime.status import Status
from gputune.strict_types import convert
from gputune.version import __version__

FAR = Finding(check="numa", severity="WARNING", message="far", remedy="taskset")
NEAR = Finding(check="numa", severity="OK", message="near")
LOST = Finding(check="gpu_lost", severity="ERROR", message="lost", remedy="reboot")
UNREAD = Finding(check="ecc_mode", severity="UNKNOWN", message="unread")
NONE = Finding(check="shm_size", severity="NOT_APPLICABLE", message="none")


def head(answer: dict[str, Any]) -> tuple[int, str]:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer["created"])
    return answer["schema"], answer["gputune"]


def test_a_check_holds_facts_and_findings() -> None:
    facts = facts_of("nvidia-h200-x8")
    findings = checks.run(facts)
    answer = json.loads(out.check(facts, findings, summary(findings, "error")))
    assert list(answer) == ["schema", "gputune", "created", "summary", "facts", "findings"]
    assert head(answer) == (1, __version__)
    read = convert(Facts, answer["facts"])
    assert replace(read, process=facts.process) == facts
    assert [folder.variable for folder in read.process.folders] == [one.variable for one in facts.process.folders]
    assert {finding["check"] for finding in answer["findings"]} == set(checks.names())
    assert convert(CheckAnswer, answer).summary == summary(findings, "error")


def test_a_status_is_below_the_same_head() -> None:
    answer = json.loads(out.status(Status(torch="2.11.0", python="python", gpu=None, settings=())))
    assert head(answer) == (1, __version__)
    assert convert(StatusAnswer, answer).torch == "2.11.0"


def test_the_summary_counts_each_check_once_by_the_worst_that_it_found() -> None:
    found = summary([NEAR, FAR, NONE], "error")
    assert (found.checks, found.worst) == (2, "WARNING")
    assert found.severities == {"ERROR": 0, "WARNING": 1, "UNKNOWN": 0, "OK": 0, "NOT_APPLICABLE": 1}


@pytest.mark.parametrize(
    ("findings", "worst"),
    [([NONE], "NOT_APPLICABLE"), ([NONE, NEAR], "OK"), ([NEAR, UNREAD], "UNKNOWN"), ([FAR, UNREAD, LOST], "ERROR")],
)
def test_the_worst_is_the_worst_of_all(findings: list[Finding], worst: str) -> None:
    assert summary(findings, "never").worst == worst


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [("error", (1, 0, 0, 0)), ("warning", (1, 1, 0, 0)), ("unknown", (1, 1, 1, 0)), ("never", (0, 0, 0, 0))],
)
def test_the_exit_code_follows_from_the_level(fail_on: FailOn, codes: tuple[int, ...]) -> None:
    assert tuple(summary([one, NEAR], fail_on).exit_code for one in (LOST, FAR, UNREAD, NONE)) == codes
    assert summary([LOST], fail_on).fail_on == fail_on
