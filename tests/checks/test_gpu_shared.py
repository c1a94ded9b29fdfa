import pytest
from recorded import found

from gputune.checks import gpu_shared


@pytest.mark.parametrize(
    ("environ", "told", "remedy"),
    [
        ({"SLURM_JOB_ID": "7", "SLURM_SHARDS_ON_NODE": "4"}, "a Slurm shard", "#SBATCH --gres=gpu:1"),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GRES": "gres:shard:2"}, "a Slurm shard", "#SBATCH --gres=gpu:1"),
        ({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}, "through MPS", "unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_ACTIVE"),
        ({"CUDA_MPS_PIPE_DIRECTORY": "/mps"}, "through MPS", "unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_ACTIVE"),
    ],
)
@pytest.mark.parametrize("machine", ["nvidia-h200-x1", "nvidia-h200-x8"])
def test_a_gpu_shared_by_the_scheduler_s_leave_is_a_warning(machine, environ, told, remedy):
    [warned] = found(gpu_shared, machine, environ=environ)
    assert warned.severity == "WARNING"
    assert told in warned.message
    assert warned.remedy.startswith(remedy)


@pytest.mark.parametrize("environ", [{}, {"SLURM_JOB_ID": "7", "SLURM_JOB_GRES": "gres:gpu:1", "SLURM_JOB_GPUS": "0"}])
def test_a_gpu_of_one_s_own_is_fine(environ):
    assert [one.severity for one in found(gpu_shared, environ=environ)] == ["OK"]


def test_no_gpu():
    [spared] = found(gpu_shared, "cpu-only", environ={"SLURM_SHARDS_ON_NODE": "4"})
    assert spared.severity == "NOT_APPLICABLE"


def test_a_gpu_that_nothing_describes_is_unknown():
    assert [one.severity for one in found(gpu_shared, "cpu-only", files={"/dev/nvidia0": ""})] == ["UNKNOWN"]
