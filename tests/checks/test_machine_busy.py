"""Others that leave fewer CPUs than this process's budget are named, and so is what could not be read."""

from dataclasses import replace

import pytest
from recorded import facts_of

from gputune.checks import machine_busy

SIXTEEN = facts_of()


def seen(budget=16, **use):
    cpu = replace(SIXTEEN.cpu, affinity_count=16, budget=budget, **use)
    [finding] = machine_busy.check(replace(SIXTEEN, cpu=cpu), ())
    return finding


@pytest.mark.parametrize(
    ("use", "severity", "message"),
    [
        ({"others": 0.04, "stolen": 0.0}, "OK", "others use 0.0 of 16 CPUs"),
        ({"others": 8.1, "stolen": 0.0}, "WARNING", "others use 8.1 of 16 CPUs"),
        ({"others": 8.1, "stolen": 0.0, "budget": 2}, "OK", "others use 8.1 of 16 CPUs"),
        (
            {"others": 6.0, "stolen": 5.9},
            "WARNING",
            "others use 6.0 of 16 CPUs, other guests of the host 5.9 of them",
        ),
    ],
)
def test_others_count_where_they_leave_too_little(use, severity, message):
    finding = seen(**use)
    assert (finding.severity, finding.message) == (severity, message)


def test_the_remedy_is_another_host_where_others_guests_take_the_cpus():
    assert "move to a host" in seen(others=6.0, stolen=5.9).remedy
    assert "top" in seen(others=6.0, stolen=0.5).remedy


def test_what_could_not_be_read_is_not_idle():
    [finding] = machine_busy.check(facts_of("cpu-only", files={"/proc/stat": None}), ())
    assert finding.severity == "UNKNOWN"
    assert finding.message.startswith("how much of the CPUs others use could not be read (/proc/stat")
