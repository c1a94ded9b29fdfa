from dataclasses import replace

import pytest
from making import row
from recorded import facts_of

from gputune.checks import measured_alone


def measured(*conditions, device="cuda:0"):
    seen = row("precision", "throughput", 100.0, device)
    return [replace(seen, conditions=dict(one)) for one in conditions]


def found(measurements, folder="nvidia-h200-x1", facts=None):
    return {one.subject: one for one in measured_alone.check(facts or facts_of(folder), measurements)}


def gpu(*conditions):
    return found(measured(*conditions))["GPU 0"]


def cpu(others, **about):
    facts = facts_of("nvidia-h200-x1")
    facts = replace(facts, cpu=replace(facts.cpu, **about))
    return found(measured({"other_cpus": others}), facts=facts)["CPU"]


def test_only_a_probe_tells():
    findings = list(measured_alone.check(facts_of("nvidia-h200-x8"), []))
    assert [one.severity for one in findings] == ["NOT_APPLICABLE"] * 8
    assert all("gputune probe" in one.message for one in findings)


@pytest.mark.parametrize(("count", "told"), [(2.0, "1 other process on it"), (4.0, "3 other processes on it")])
def test_another_process_on_the_gpu(count, told):
    one = gpu({"gpu_processes": 1.0}, {"gpu_processes": count}, {})
    assert (one.severity, one.message) == ("WARNING", f"{told} during the measurements")
    assert "probe again" in one.remedy


def test_how_much_of_the_gpu_it_used():
    one = gpu({"gpu_processes": 2.0, "other_sm_percent": 3.0}, {"gpu_processes": 2.0, "other_sm_percent": 45.0})
    assert one.message == "1 other process on it during the measurements, which used up to 45 % of its SMs"


def test_alone_on_the_gpu():
    one = gpu({"gpu_processes": 1.0, "other_sm_percent": 0.0}, {})
    assert (one.severity, one.message) == ("OK", "no other process was seen on it")


def test_processes_that_could_not_be_read_are_unknown():
    assert gpu({"power_watts": 300.0}).severity == "UNKNOWN"


def test_only_the_gpu_that_was_measured_is_judged():
    findings = found(measured({"gpu_processes": 2.0}, device="cuda:3"), "nvidia-h200-x8")
    assert [subject for subject, one in findings.items() if one.severity == "WARNING"] == ["GPU 3"]
    assert [one.severity for one in findings.values()].count("NOT_APPLICABLE") == 7


@pytest.mark.parametrize(("others", "severity"), [(0.0, "OK"), (0.3, "OK"), (0.4, "WARNING"), (12.0, "WARNING")])
def test_others_on_more_than_a_trace_of_the_cpus(others, severity):
    one = cpu(others)
    assert one.severity == severity
    assert one.message.startswith(f"other processes used up to {others:.1f} of 16 CPUs")


@pytest.mark.parametrize(("others", "severity"), [(12.0, "OK"), (13.1, "WARNING")])
def test_others_may_use_what_the_budget_leaves(others, severity):
    assert cpu(others, affinity_count=16, budget=4).severity == severity


def test_the_busiest_moment_counts():
    assert found(measured({"other_cpus": 0.1}, {"other_cpus": 9.0}, {"other_cpus": 0.0}))["CPU"].severity == "WARNING"


def test_cpus_of_which_nothing_was_read_are_unknown():
    assert found(measured({"gpu_processes": 1.0}))["CPU"].severity == "UNKNOWN"


def test_a_probe_of_the_cpu():
    findings = found(measured({"other_cpus": 1.5}, device="cpu"), "cpu-only")
    assert {subject: one.severity for subject, one in findings.items()} == {None: "NOT_APPLICABLE", "CPU": "WARNING"}
