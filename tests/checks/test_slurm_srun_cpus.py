import pytest
from recorded import found

from gputune.checks import slurm_srun_cpus

STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_CPUS_PER_TASK": "16"}


def finding(cpus, **environ):
    [only] = found(slurm_srun_cpus, environ={**STEP, **environ}, affinity=range(cpus))
    return only


@pytest.mark.parametrize("cpus", [1, 2, 15])
def test_fewer_cpus_than_the_job_asked_for_are_a_warning(cpus):
    warned = finding(cpus)
    assert (warned.severity, warned.subject) == ("WARNING", "SRUN_CPUS_PER_TASK")
    assert warned.message == f"the job requested 16 CPUs per task, but srun gave this one {cpus}"
    assert warned.remedy == ('export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"  # in the batch script, before srun')


@pytest.mark.parametrize("cpus", [16, 64])
def test_as_many_as_the_job_asked_for_are_fine(cpus):
    fine = finding(cpus)
    assert (fine.severity, fine.message) == ("OK", f"srun gave this task {cpus} CPUs")


def test_fewer_are_fine_where_srun_was_told():
    assert finding(4, SRUN_CPUS_PER_TASK="4").severity == "OK"


def test_a_job_that_asked_for_none_was_refused_none():
    assert finding(1, SLURM_CPUS_PER_TASK=None).severity == "OK"


@pytest.mark.parametrize("step", [None, "", "batch", "4294967290", "4294967291"])
def test_the_batch_script_itself_is_no_step_of_srun_s(step):
    assert finding(1, SLURM_STEP_ID=step).severity == "NOT_APPLICABLE"


def test_outside_slurm_a_leftover_of_it_means_nothing():
    assert finding(1, SLURM_JOB_ID=None).severity == "NOT_APPLICABLE"
