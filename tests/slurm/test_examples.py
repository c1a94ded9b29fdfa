"""The example of examples/slurm, on a real Slurm of two nodes: every rank trains with one profile of the job's own."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from making import gputune
from printed import EXAMPLES

pytestmark = pytest.mark.slurm


def test_the_entrypoint_makes_one_training_of_all_ranks(cluster, tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder)
    words = ("sh", "slurm/entrypoint.sh", "python", "ddp.py", "--verify", "--epochs", "2")
    job = gputune("deploy", "slurm", "sbatch", "--nodes=2", "--cpus-per-task=1", "--", *words).stdout
    (folder / "job.sh").write_text(job.replace("budget=standard", "budget=quick"))
    path = os.pathsep.join([str(Path(sys.executable).parent), cluster.environ["PATH"]])
    number, code = cluster.submitted(folder / "job.sh", {"PATH": path})
    output = (folder / "out").read_text()
    assert code == 0, output
    losses = [float(loss) for loss in re.findall(r"^epoch \d: loss ([0-9.]+), .* on 2 ranks$", output, re.MULTILINE)]
    assert len(losses) == 2, output
    assert losses[1] < losses[0]
    assert (folder / f"gputune-{number}" / "job.yaml").exists()
