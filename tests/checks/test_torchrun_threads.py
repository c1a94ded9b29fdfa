import pytest
from recorded import found

from gputune.checks import torchrun_threads


def finding(**environ):
    [only] = found(torchrun_threads, environ=environ)
    return only


def rank(ranks, **environ):
    return finding(TORCHELASTIC_RUN_ID="none", LOCAL_WORLD_SIZE=ranks, **environ)


@pytest.mark.parametrize(("ranks", "cpus"), [("2", 8), ("4", 4), ("8", 2)])
def test_one_thread_where_there_are_more_cpus_is_a_warning(ranks, cpus):
    warned = rank(ranks, OMP_NUM_THREADS="1")
    assert (warned.severity, warned.subject) == ("WARNING", "OMP_NUM_THREADS")
    assert f"1 thread, although there are {cpus} CPUs for each" in warned.message
    assert warned.remedy == f"export OMP_NUM_THREADS={cpus}  # before torchrun starts"


@pytest.mark.parametrize("ranks", ["16", "64"])
def test_one_thread_where_there_is_one_cpu_is_fine(ranks):
    fine = rank(ranks, OMP_NUM_THREADS="1")
    assert (fine.severity, fine.message) == ("OK", "each rank has 1 CPU, and OMP_NUM_THREADS is 1")


def test_a_count_that_somebody_chose_is_fine():
    fine = rank("4", OMP_NUM_THREADS="4")
    assert (fine.severity, fine.message) == ("OK", "each rank has 4 CPUs, and OMP_NUM_THREADS is 4")


def test_without_a_count_torch_takes_its_own():
    fine = rank("4")
    assert (fine.severity, fine.message) == ("OK", "each rank has 4 CPUs, and OMP_NUM_THREADS is not set")


@pytest.mark.parametrize("threads", [None, "1"])
def test_torchrun_leaves_a_rank_that_is_alone_its_threads(threads):
    assert rank("1", OMP_NUM_THREADS=threads).severity == "NOT_APPLICABLE"


def test_outside_torchrun_one_thread_is_somebody_s_choice():
    assert finding(OMP_NUM_THREADS="1", LOCAL_WORLD_SIZE="4").severity == "NOT_APPLICABLE"
