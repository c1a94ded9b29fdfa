"""What Slurm, torchrun and Kubernetes say about this process's share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.host import Host
from gputune.resources import scheduler

TEXT = st.text(alphabet="0123456789(x),- ٣²", max_size=30)


def read(**environ):
    return scheduler.read(Host(environ=environ))


def test_nothing_granted():
    assert read() == scheduler.Scheduler()


@pytest.mark.parametrize(
    ("environ", "granted"),
    [
        (
            {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "12", "SLURM_STEP_GPUS": "0,1",
             "SLURM_STEP_TASKS_PER_NODE": "8(x4)"},
            {"name": "slurm", "job": "7", "cpus_per_task": 12, "gpus": "0,1", "local_ranks": 8},
        ),
        ({"SLURM_JOB_GPUS": "0,1,2", "SLURM_STEP_GPUS": "1"}, {"gpus": "1"}),
        ({"LOCAL_WORLD_SIZE": "4", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}, {"local_ranks": 4}),
        ({"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": "2"}, {"torchrun": True}),
        ({"LOCAL_WORLD_SIZE": "2"}, {"torchrun": False}),
        ({"SLURM_JOB_ID": "7", "SRUN_CPUS_PER_TASK": "8"}, {"srun_cpus_per_task": 8}),
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}, {"step": True}),
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "17"}, {"step": True}),
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "batch"}, {"step": False}),
        ({"SLURM_JOB_ID": "7"}, {"step": False, "gpus_bound": False}),
        ({"SLURM_JOB_ID": "7", "SLURM_GPUS_PER_TASK": "1"}, {"gpus_bound": True}),
        ({"SLURM_JOB_ID": "7", "SLURM_GPU_BIND": "1"}, {"gpus_bound": True}),
        ({"SLURM_JOB_ID": "7", "SLURM_TRES_PER_TASK": "1"}, {"gpus_bound": True}),
        ({}, {"gpu_sharing": None}),
        ({"SLURM_SHARDS_ON_NODE": "4"}, {"gpu_sharing": "shard"}),
        ({"SLURM_JOB_GRES": "gres/shard:4"}, {"gpu_sharing": "shard"}),
        ({"CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps"}, {"gpu_sharing": "mps"}),
        ({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}, {"gpu_sharing": "mps"}),
        ({"LSB_JOBID": "12"}, {"name": "lsf", "job": "12"}),
        ({"PBS_JOBID": "12"}, {"name": "pbs", "job": "12"}),
        ({"KUBERNETES_SERVICE_HOST": "12"}, {"name": "kubernetes", "job": None}),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_scheduler_or_a_launcher_says(environ, granted):
    found = read(**environ)
    assert {name: getattr(found, name) for name in granted} == granted


@pytest.mark.parametrize("variable", ["SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"])
def test_a_leftover_of_slurm_outside_a_job_grants_no_cpus(variable):
    assert read(**{variable: "12"}).cpus_of_rank is None


@pytest.mark.parametrize(
    ("environ", "of_task", "of_rank"),
    [
        ({}, None, None),
        ({"SLURM_CPUS_ON_NODE": "8"}, 8, 8),
        ({"SLURM_CPUS_ON_NODE": "8", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}, 2, 2),
        ({"SLURM_CPUS_ON_NODE": "8", "SLURM_STEP_TASKS_PER_NODE": "16"}, 1, 1),
        ({"SLURM_CPUS_ON_NODE": "64", "SLURM_CPUS_PER_TASK": "6", "SLURM_STEP_TASKS_PER_NODE": "8"}, 6, 6),
        ({"SLURM_CPUS_ON_NODE": "8", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}, 8, 2),
        ({"SLURM_CPUS_PER_TASK": "12", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}, 12, 3),
        ({"SLURM_CPUS_PER_TASK": "2", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}, 2, 1),
    ],
    ids=[
        "none",
        "node",
        "tasks",
        "too many tasks",
        "each task's own",
        "node, torchrun",
        "task, torchrun",
        "too many ranks",
    ],
)
def test_slurm_s_grant_to_a_task_and_to_a_rank(environ, of_task, of_rank):
    found = read(SLURM_JOB_ID="7", **environ)
    assert (found.cpus_of_task, found.cpus_of_rank) == (of_task, of_rank)


def test_torchrun_in_a_batch_script_has_all_that_the_job_has_there():
    job = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "8", "SLURM_CPUS_ON_NODE": "64"}
    ranks = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": "8"}
    assert read(**job, **ranks).cpus_of_rank == 8
    assert read(**job, **ranks, SLURM_STEP_ID="0").cpus_of_rank == 1, "srun gave its one task 8"


@pytest.mark.parametrize(("text", "ranks"), [("4", 4), ("4(x2)", 4), ("4(x2),3", 4), ("2,1(x3)", 2), ("", 1), ("x", 1)])
def test_slurm_s_way_to_write_tasks(text, ranks):
    assert read(SLURM_STEP_TASKS_PER_NODE=text).local_ranks == ranks


@pytest.mark.parametrize("text", ["", "0", "-1", "two", "1.5", "²", "٣", "9" * 5000])
def test_a_count_that_is_none_grants_nothing(text):
    found = read(SLURM_JOB_ID="7", SLURM_CPUS_PER_TASK=text, SLURM_CPUS_ON_NODE=text, LOCAL_WORLD_SIZE=text)
    assert (found.cpus_per_task, found.cpus_on_node, found.local_ranks) == (None, None, 1)


@given(cpus=TEXT, ranks=TEXT, tasks=TEXT)
def test_any_text_gives_a_count_or_none(cpus, ranks, tasks):
    found = read(SLURM_JOB_ID="7", SLURM_CPUS_PER_TASK=cpus, LOCAL_WORLD_SIZE=ranks, SLURM_STEP_TASKS_PER_NODE=tasks)
    assert found.cpus_per_task is None or found.cpus_per_task > 0
    assert found.local_ranks > 0


@pytest.mark.parametrize(
    ("environ", "gpus", "count"),
    [
        ({}, None, None),
        ({"SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7", "SLURM_GPUS_ON_NODE": "8"}, "0,1,2,3,4,5,6,7", 8),
        ({"SLURM_STEP_GPUS": "0-7"}, "0-7", 8),
        ({"SLURM_STEP_GPUS": "0-2,5", "SLURM_JOB_GPUS": "0-7"}, "0-2,5", 4),
        ({"SLURM_GPUS_ON_NODE": "8"}, None, 8),
        ({"SLURM_GPUS_ON_NODE": "0"}, None, 0),
        ({"SLURM_GPUS_ON_NODE": "two"}, None, None),
        ({"SLURM_JOB_GPUS": "h100:2"}, "h100:2", None),
        ({"SLURM_JOB_GPUS": "7-0"}, "7-0", None),
        ({"SLURM_JOB_GPUS": "0-999999999"}, "0-999999999", None),
    ],
)
def test_how_many_gpus_slurm_granted(environ, gpus, count):
    found = read(SLURM_JOB_ID="7", **environ)
    assert (found.gpus, found.gpu_count) == (gpus, count)


@given(gpus=st.text(alphabet="0123456789,-: x", max_size=20))
def test_any_text_gives_a_bounded_number_of_gpus_or_none(gpus):
    count = read(SLURM_JOB_ID="7", SLURM_JOB_GPUS=gpus).gpu_count
    assert count is None or 0 < count <= 1024
