import pytest
from recorded import RecordedHost, found

from gputune.checks import slurm_cpus

JOB = {"SLURM_JOB_ID": "7"}


def finding(environ, cpus=16):
    [only] = found(slurm_cpus, environ=environ, affinity=range(cpus))
    return only


@pytest.mark.parametrize(
    ("granted", "cpus"), [({"SLURM_CPUS_PER_TASK": "1"}, 16), ({"SLURM_CPUS_PER_TASK": "1"}, 1), ({}, 1), ({}, 2)]
)
@pytest.mark.parametrize("gpus", [{"SLURM_STEP_GPUS": "0,1"}, {"SLURM_JOB_GPUS": "3"}, {"SLURM_GPUS_ON_NODE": "8"}])
def test_one_core_for_a_task_with_a_gpu_is_a_warning(granted, cpus, gpus):
    warned = finding({**JOB, **granted, **gpus}, cpus)
    assert (warned.severity, warned.subject) == ("WARNING", "SLURM_CPUS_PER_TASK")
    granted = "8 GPUs" if "SLURM_GPUS_ON_NODE" in gpus else f"GPU {next(iter(gpus.values()))}"
    assert f"granted {granted}, but only one core to each task" in warned.message
    assert warned.remedy.startswith("#SBATCH --cpus-per-task=16 ")


@pytest.mark.parametrize(
    ("granted", "cpus", "told"),
    [("2", 2, "2 CPUs"), ("8", 16, "8 CPUs"), ("16", 8, "8 CPUs"), (None, 3, "3 CPUs"), (None, 16, "16 CPUs")],
)
def test_more_than_one_is_fine(granted, cpus, told):
    fine = finding({**JOB, "SLURM_CPUS_PER_TASK": granted, "SLURM_JOB_GPUS": "0"}, cpus)
    assert fine.severity == "OK"
    assert fine.message == f"each task may use {told}"


def test_one_core_of_the_node_for_each_task_is_a_warning_also_where_no_affinity_holds_it_there():
    granted = {"SLURM_CPUS_ON_NODE": "8", "SLURM_STEP_TASKS_PER_NODE": "4", "SLURM_JOB_GPUS": "0"}
    assert finding({**JOB, **granted}).severity == "WARNING"
    fine = finding({**JOB, **granted, "SLURM_CPUS_ON_NODE": "12"})
    assert (fine.severity, fine.message) == ("OK", "each task may use 3 CPUs")


def test_a_task_without_a_gpu_may_have_one_cpu():
    assert finding({**JOB, "SLURM_CPUS_PER_TASK": "1"}, 1).severity == "OK"


def test_outside_slurm_a_leftover_of_it_means_nothing():
    assert finding({"SLURM_CPUS_PER_TASK": "1", "SLURM_JOB_GPUS": "0"}, 1).severity == "NOT_APPLICABLE"


@pytest.mark.parametrize(
    ("granted", "environ", "eighths"),
    [("3", {}, 1), ("0-3", {}, 4), ("0,1,2,3,4,5,6,7", {}, 8), ("0-3", {"SLURM_STEP_TASKS_PER_NODE": "4"}, 1)],
)
def test_a_task_gets_the_share_of_each_of_its_gpus(granted, environ, eighths):
    job = {**JOB, "SLURM_CPUS_PER_TASK": "1", "SLURM_JOB_GPUS": granted, **environ}
    [warned] = found(slurm_cpus, "nvidia-h200-x8", environ=job)
    cpus = RecordedHost("nvidia-h200-x8").counts[0] * eighths // 8
    assert warned.remedy.startswith(f"#SBATCH --cpus-per-task={cpus}  # ")
