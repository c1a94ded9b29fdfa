"""Metrics of a node, read back by Prometheus's own parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import facts_of

from gputune import __version__, checks
from gputune.checks import Finding
from gputune.report import prometheus
from gputune.resources.printable import printable

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def facts():
    return facts_of("nvidia-h200-x8")


def found(check, severity="OK", subject=None):
    return Finding(check=check, severity=severity, message="so it is", remedy="do this", subject=subject)


def parsed(text):
    from prometheus_client.parser import text_string_to_metric_families  # of the extra `cluster`

    return text_string_to_metric_families(text)


def read(text):
    """Family to its samples: labels and value. No series twice, and no timestamp."""
    families = {}
    for family in parsed(text):
        assert family.type == "gauge"
        assert family.documentation
        assert not any(sample.timestamp for sample in family.samples)
        families[family.name] = [(sample.labels, sample.value) for sample in family.samples]
        series = [tuple(sorted(labels.items())) for labels, _ in families[family.name]]
        assert len(series) == len(set(series))
    return families


def statuses(facts, findings):
    rows = read(prometheus.text(facts, findings)).get("gputune_check_status", [])
    return {(labels["check"], labels["subject"]): value for labels, value in rows}


def test_each_finding_is_a_number_and_what_is_not_applicable_has_no_series(facts):
    severities = {"OK": 0, "WARNING": 1, "ERROR": 2, "UNKNOWN": 3}
    findings = [found("ecc_errors", severity, f"GPU {number}") for severity, number in severities.items()]
    findings.append(found("mig_mode", "NOT_APPLICABLE"))
    assert statuses(facts, findings) == {("ecc_errors", f"GPU {number}"): number for number in severities.values()}


def test_two_findings_about_one_subject_are_one_series_with_the_worst(facts):
    findings = [
        found("injection", one, "LD_PRELOAD") for one in ("OK", "ERROR", "NOT_APPLICABLE", "WARNING", "UNKNOWN")
    ]
    assert statuses(facts, findings) == {("injection", "LD_PRELOAD"): 2}


def test_a_whole_machine(facts):
    families = read(prometheus.text(facts, checks.run(facts)))
    assert families.keys() == {"gputune_check_status", "gputune_gpus", "gputune_info"}
    assert families["gputune_gpus"] == [({}, 8)]
    [(info, one)] = families["gputune_info"]
    assert one == 1
    assert info == {
        "version": __version__, "torch": facts.libraries.torch, "cuda": facts.libraries.cuda,
        "driver": facts.driver.version, "gpu": "NVIDIA H200",
    }  # fmt: skip


def test_the_lines_stand_as_the_format_has_them(facts):
    lines = prometheus.text(facts, [found("numa", "WARNING", 'a "b" \\ c\nd')]).splitlines()
    assert lines[0].startswith("# HELP gputune_check_status 0 ok, 1 warning, 2 error, 3 unknown.")
    assert lines[1:3] == [
        "# TYPE gputune_check_status gauge",
        r'gputune_check_status{check="numa",subject="a \"b\" \\ c\nd"} 1',
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_subject_comes_back_with_what_cannot_be_seen_escaped(subject):
    [family] = parsed(prometheus.series("gputune_check_status", check="x", subject=subject) + " 1\n")
    shown = printable(subject, keep="\n")
    assert [sample.labels for sample in family.samples] == [{"check": "x", "subject": shown}]


@given(st.text(st.characters(categories=["Cs"]), min_size=1, max_size=3))
def test_bytes_that_are_no_text_are_written_as_numbers(subject):
    assert "\\\\ud" in prometheus.series("gputune_info", gpu=subject).encode().decode()
