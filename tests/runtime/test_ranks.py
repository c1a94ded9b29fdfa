"""Launchers are recognised by name, and a count of threads for one process is not given to each of their ranks."""

import pytest
from making import H200, profile

from gputune.runtime.environment import Terms, plan
from gputune.runtime.launch import starts_ranks


@pytest.mark.parametrize(
    "command",
    [
        ["torchrun", "--nproc-per-node", "8", "train.py"],
        ["/opt/venv/bin/torchrun", "train.py"],
        ["accelerate", "launch", "train.py"],
        ["python", "-m", "torch.distributed.run", "train.py"],
        ["accelerate-launch", "train.py"],
        ["python", "/opt/venv/bin/accelerate", "launch", "train.py"],
        ["python", "-m", "accelerate.commands.accelerate_cli", "launch", "train.py"],
        ["uv", "run", "fabric", "run", "train.py"],
        ["nohup", "torchrun", "train.py"],
    ],
)
def test_a_launcher(command):
    assert starts_ranks(command)


@pytest.mark.parametrize(
    "command", [["python", "train.py", "torchrun"], ["./torchrun.sh"], ["python", "-m", "pkg", "ray"], ["true"], []]
)
def test_not_a_launcher(command):
    assert not starts_ranks(command)


def test_ranks_share_the_cpus_so_threads_are_left_to_the_launcher():
    planned = plan(profile({"omp_threads": 16}), H200, {}, Terms(ranks=True))
    assert planned.environ == {}
    [row] = planned.applied
    assert (row.status, row.why) == ("skipped", "the command starts several processes, which share the CPUs")
    assert plan(profile({"omp_threads": 16}), H200, {}).environ["OMP_NUM_THREADS"] == "16"
