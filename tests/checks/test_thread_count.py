import pytest
from recorded import found
from trees import CGROUP

from gputune.checks import thread_count


def finding(threads, ranks="1", cpus=16, quota="max 100000", **environ):
    environ = {"LOCAL_WORLD_SIZE": ranks, **environ}
    files = {f"{CGROUP}/cpu.max": quota}
    [only] = found(thread_count, torch={"threads": threads}, environ=environ, affinity=range(cpus), files=files)
    return only


@pytest.mark.parametrize(("threads", "cpus"), [(17, 16), (5, 4), (2, 1)])
def test_more_threads_than_cpus_are_a_warning(threads, cpus):
    warned = finding(threads, cpus=cpus)
    assert warned.severity == "WARNING"
    assert warned.message == f"torch starts {threads} threads, but may use only {cpus} CPU{'s' * (cpus > 1)} for them"
    assert warned.remedy == f"export OMP_NUM_THREADS={cpus}"


def test_ranks_that_together_start_more_threads_than_cpus_are_a_warning():
    warned = finding(5, ranks="4")
    assert warned.severity == "WARNING"
    assert warned.message == "torch starts 5 threads in each of 4 ranks, but may use only 4 CPUs for them"
    assert warned.remedy == "export OMP_NUM_THREADS=4"


@pytest.mark.parametrize(("threads", "severity"), [(4, "OK"), (5, "WARNING")])
@pytest.mark.parametrize(("ranks", "cpus"), [("1", 16), ("4", 4)], ids=["not bound", "bound to its own"])
def test_what_the_scheduler_granted_to_each_task_is_its_share(threads, severity, ranks, cpus):
    assert finding(threads, ranks, cpus, SLURM_JOB_ID="7", SLURM_CPUS_PER_TASK="4").severity == severity


@pytest.mark.parametrize(("threads", "severity", "remedy"), [(16, "OK", None), (17, "WARNING", "OMP_NUM_THREADS=2")])
def test_a_quota_is_another_check_s_matter_and_the_remedy_heeds_it(threads, severity, remedy):
    judged = finding(threads, quota="200000 100000")
    assert (judged.severity, judged.remedy) == (severity, remedy and f"export {remedy}")


def test_mkl_s_own_variable_would_win_over_openmp_s():
    assert finding(17, MKL_NUM_THREADS="17").remedy == "unset MKL_NUM_THREADS && export OMP_NUM_THREADS=16"


@pytest.mark.parametrize(("threads", "ranks"), [(16, "1"), (1, "1"), (4, "4"), (1, "16")])
def test_a_cpu_for_each_thread_is_fine(threads, ranks):
    fine = finding(threads, ranks)
    assert fine.severity == "OK"
    cpus = 16 // int(ranks)
    assert (
        fine.message == f"torch starts {threads} thread{'s' * (threads > 1)}, and may use {cpus} CPU{'s' * (cpus > 1)}"
    )


def test_without_a_gpu_it_is_asked_all_the_same():
    assert [each.severity for each in found(thread_count, "cpu-only", torch={"threads": 3})] == ["WARNING"]
