"""The contract of a check."""

from pathlib import Path

import pytest
from recorded import changed, facts_of

from gputune import checks
from gputune.checks import Finding


@pytest.mark.parametrize("severity", ["WARNING", "ERROR"])
def test_a_complaint_needs_a_remedy(severity):
    with pytest.raises(ValueError, match="remedy"):
        Finding(check="shm_size", severity=severity, message="too small")


def test_a_check_that_fails_is_unknown_and_the_others_still_answer():
    findings = {
        finding.check: finding for finding in checks.run(changed(facts_of(), {"memory.shm_bytes": "no number"}))
    }
    assert set(findings) == set(checks.names())
    assert findings["shm_size"].severity == "UNKNOWN"
    assert "TypeError" in findings["shm_size"].message


def test_only_the_named_checks_run():
    assert {finding.check for finding in checks.run(facts_of(), only=["shm_size", "numa"])} == {"shm_size", "numa"}


def test_another_name_is_refused():
    for name in ("no_such_check", "_questions", "__init__"):
        with pytest.raises(KeyError):
            checks.load(name)


def test_the_help_asks_and_names_its_source():
    for name in checks.names():
        text = checks.load(name).__doc__
        assert text.splitlines()[0].endswith("?"), name
        assert "\nSource: " in text, name


def test_most_checks_are_short():
    lines = sorted(len(Path(checks.load(name).__file__).read_text().splitlines()) for name in checks.names())
    assert lines[len(lines) // 2] <= 40
