"""All GPUs of this node at once, and eight ranks of which one measures; on a real GPU."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from making import environ, serving

from gputune.profile import load

pytestmark = pytest.mark.gpu

RANKS = 8


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    path = tmp_path_factory.mktemp("all") / "profile.yaml"
    command = [
        sys.executable,
        "-m",
        "gputune",
        "probe",
        "--device",
        "all",
        "--budget",
        "quick",
        "-o",
        path,
    ]
    subprocess.run(command, check=True, env=environ(XDG_CACHE_HOME=str(path.parent)))
    return load(path)


def test_every_gpu_is_measured_beside_the_others(probed):
    rows = [row for row in probed.measurements if row.bench == "side_by_side"]
    devices = [f"cuda:{number}" for number in range(probed.fingerprint.gpu_count)]
    assert [(row.device, row.metric) for row in rows] == [
        (device, metric) for device in devices for metric in ("matmul", "bandwidth")
    ]


def test_healthy_gpus_raise_no_alarm(probed):
    assert not [one for one in probed.findings if one.check == "slow_gpu" and one.severity in ("WARNING", "UNKNOWN")]


def test_no_worker_is_left(probed):
    assert not serving()


def test_of_eight_ranks_one_measures_and_all_apply_the_same(tmp_path):
    """The standard probe of a real GPU, as it is."""
    env = environ(GPUTUNE_PROBE="missing", XDG_CACHE_HOME=str(tmp_path))
    command = [sys.executable, "-m", "gputune", "apply", "auto", "--"]
    shown = [
        sys.executable,
        "-c",
        "import os, torch; print(os.environ['GPUTUNE_APPLY'], torch.backends.cudnn.benchmark)",
    ]
    started = time.monotonic()
    ranks = [
        subprocess.Popen([*command, *shown], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(RANKS)
    ]
    told = [rank.communicate(timeout=300) for rank in ranks]
    print(f"\neight ranks: {time.monotonic() - started:.0f} s")
    assert [rank.returncode for rank in ranks] == [0] * RANKS
    assert sum("probing this machine before the command starts" in said for _, said in told) == 1
    assert len({out for out, _ in told}) == 1
    assert '"matmul_precision":"tf32"' in told[0][0]
    assert len(list(Path(tmp_path, "gputune").glob("*.yaml"))) == 1
    assert os.environ.get("GPUTUNE_APPLY") is None
