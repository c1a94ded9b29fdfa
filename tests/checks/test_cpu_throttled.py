import pytest
from recorded import found
from trees import CGROUP

from gputune.checks import cpu_throttled


def finding(stat, quota="400000 100000", **environ):
    files = {f"{CGROUP}/cpu.max": quota, f"{CGROUP}/cpu.stat": stat}
    [only] = found(cpu_throttled, files=files, environ=environ)
    return only


def stopped(throttled, periods=10_000):
    return f"usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 9\n"


@pytest.mark.parametrize(("throttled", "periods"), [(101, 10_000), (10_000, 10_000), (5, 499), (5, 5)])
def test_a_group_that_is_stopped_often_is_a_warning(throttled, periods):
    warned = finding(stopped(throttled, periods))
    assert warned.severity == "WARNING"
    assert warned.message == f"stopped in {throttled} of {periods} periods, having used up its quota of 4 CPUs"
    assert "export OMP_NUM_THREADS=4 " in warned.remedy
    assert "docker run --cpus=8 IMAGE" in warned.remedy
    assert warned.subject == f"{CGROUP}/cpu.max"


def test_ranks_share_what_the_remedy_gives():
    assert "export OMP_NUM_THREADS=2 " in finding(stopped(5000), LOCAL_WORLD_SIZE="2").remedy


@pytest.mark.parametrize(("throttled", "periods"), [(0, 10_000), (100, 10_000), (5, 500), (4, 4)])
def test_a_group_that_is_stopped_seldom_or_hardly_yet_is_fine(throttled, periods):
    fine = finding(stopped(throttled, periods))
    assert fine.severity == "OK"
    assert fine.message == f"stopped in {throttled} of {periods} periods, having used up its quota of 4 CPUs"


def test_a_group_that_has_not_run_yet_is_fine():
    assert finding(stopped(0, periods=0)).severity == "OK"


def test_without_a_quota_nothing_can_be_stopped():
    assert finding(stopped(5000), quota="max 100000").severity == "NOT_APPLICABLE"


@pytest.mark.parametrize("stat", [None, "usage_usec 5\n", "nr_periods 7\nnr_throttled many\n"])
def test_counts_that_cannot_be_read_are_unknown(stat):
    unread = finding(stat)
    assert unread.severity == "UNKNOWN"
    assert f"{CGROUP}/cpu.stat" in unread.message


def test_a_quota_that_cannot_be_read_is_unknown():
    unread = finding(stopped(0), quota="garbage")
    assert unread.severity == "UNKNOWN"
    assert "garbage" in unread.message
