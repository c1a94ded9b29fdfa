import pytest
from recorded import facts_of
from trees import CGROUP

from gputune.checks import cpu_quota


def finding(text, **environ):
    [found] = cpu_quota.check(facts_of(files={f"{CGROUP}/cpu.max": text}, environ=environ), ())
    return found


@pytest.mark.parametrize(("text", "quota", "budget"), [("250000 100000", "2.5", 2), ("100000 100000", "1", 1)])
def test_a_quota_below_the_affinity(text, quota, budget):
    found = finding(text)
    assert found.severity == "WARNING"
    assert f"{quota} CPUs" in found.message
    assert "16" in found.message
    assert found.remedy == (f"export OMP_NUM_THREADS={budget}  # and give DataLoader num_workers={budget} or less")
    assert found.subject == f"{CGROUP}/cpu.max"


@pytest.mark.parametrize("threads", [1, 16])
def test_a_quota_below_one_cpu_stops_even_a_single_thread(threads):
    [found] = cpu_quota.check(facts_of(files={f"{CGROUP}/cpu.max": "10000 100000"}, torch={"threads": threads}), ())
    assert (found.severity, found.subject) == ("WARNING", f"{CGROUP}/cpu.max")
    assert "0.1 of a CPU" in found.message
    assert "OMP_NUM_THREADS" not in found.remedy


def test_a_quota_that_torch_s_threads_keep_to():
    facts = facts_of(files={f"{CGROUP}/cpu.max": "250000 100000"}, torch={"threads": 2})
    [found] = cpu_quota.check(facts, ())
    assert (found.severity, found.message) == ("OK", "the quota allows 2.5 of 16 CPUs, and torch starts 2 threads")


def test_ranks_share_the_quota():
    assert "OMP_NUM_THREADS=2 " in finding("800000 100000", LOCAL_WORLD_SIZE="4").remedy


@pytest.mark.parametrize("text", ["max 100000", "1600000 100000", "6400000 100000"])
def test_a_quota_that_takes_nothing_away(text):
    assert finding(text).severity == "OK"


@pytest.mark.parametrize("text", ["garbage", "-1", "-1 100000", "", "max100000"])
def test_an_unread_quota(text):
    """Only the first version of control groups writes -1 for no limit, in another file."""
    found = finding(text)
    assert found.severity == "UNKNOWN"
    assert repr(text) in found.message
