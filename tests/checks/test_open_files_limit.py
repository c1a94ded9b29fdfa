import pytest
from recorded import found

from gputune.checks import open_files_limit


def finding(limit, cpus=16):
    limits = f"Max open files            {limit}             1048576            files     \n"
    [only] = found(open_files_limit, files={"/proc/self/limits": limits}, affinity=range(cpus))
    return only


@pytest.mark.parametrize(("limit", "cpus", "need"), [(355, 16, 356), (256, 16, 356), (1024, 58, 1028), (115, 1, 116)])
def test_fewer_files_than_the_workers_may_need_is_a_warning(limit, cpus, need):
    warned = finding(limit, cpus)
    assert warned.severity == "WARNING"
    assert f"{limit} files may be open" in warned.message
    assert f"on each of {cpus} CPUs may need {need}" in warned.message
    assert warned.remedy.startswith('ulimit -n "$(ulimit -Hn)"  # ')
    assert "docker run --ulimit nofile=65536:65536 IMAGE" in warned.remedy


@pytest.mark.parametrize(
    ("limit", "cpus", "told"),
    [(356, 16, "356"), (1024, 57, "1024"), (116, 1, "116"), ("unlimited", 64, "any number of")],
)
def test_enough_is_fine(limit, cpus, told):
    fine = finding(limit, cpus)
    assert (fine.severity, fine.message) == ("OK", f"{told} files may be open")


@pytest.mark.parametrize(("limits", "reason"), [(None, "No such file"), ("Max cpu time 1 1 seconds\n", "open files")])
def test_a_limit_that_cannot_be_read_is_unknown(limits, reason):
    [unread] = found(open_files_limit, files={"/proc/self/limits": limits})
    assert unread.severity == "UNKNOWN"
    assert reason in unread.message
