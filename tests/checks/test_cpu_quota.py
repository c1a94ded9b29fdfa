import pytest
from recorded import facts_of
from trees import CGROUP

from gputune.checks import cpu_quota


def finding(text, **environ):
    [found] = cpu_quota.check(facts_of(files={f"{CGROUP}/cpu.max": text}, environ=environ), ())
    return found


@pytest.mark.parametrize(("text", "quota", "budget"), [("250000 100000", "2.5", 2), ("50000 100000", "0.5", 1)])
def test_a_quota_below_the_affinity(text, quota, budget):
    found = finding(text)
    assert found.severity == "WARNING"
    assert f"{quota} CPUs" in found.message
    assert "16" in found.message
    assert f"OMP_NUM_THREADS={budget}," in found.remedy
    assert f"num_workers={budget} " in found.remedy
    assert found.subject == f"{CGROUP}/cpu.max"


def test_a_quota_that_torch_s_threads_keep_to():
    facts = facts_of(files={f"{CGROUP}/cpu.max": "250000 100000"}, torch={"threads": 2})
    [found] = cpu_quota.check(facts, ())
    assert (found.severity, found.message) == ("OK", "the quota allows 2.5 of 16 CPUs, and torch starts 2 threads")


def test_ranks_share_the_quota():
    assert "OMP_NUM_THREADS=2," in finding("800000 100000", LOCAL_WORLD_SIZE="4").remedy


@pytest.mark.parametrize("text", ["max 100000", "1600000 100000", "6400000 100000"])
def test_a_quota_that_takes_nothing_away(text):
    assert finding(text).severity == "OK"


def test_an_unread_quota():
    found = finding("garbage")
    assert found.severity == "UNKNOWN"
    assert "garbage" in found.message
