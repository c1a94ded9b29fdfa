"""What the checks tell a job of Slurm's to ask for, asked of a real Slurm: the complaint is gone then."""

import json
import re
import sys

import pytest
import stand_in

pytestmark = pytest.mark.slurm

CHECK = f"{sys.executable} -P -m gputune check --json --fail-on never --only"


@pytest.fixture
def findings(cluster, tmp_path):
    """The findings of a check in a job with these lines of #SBATCH."""
    torch = {"PYTHONPATH": stand_in.torch(tmp_path)}

    def findings(name, *lines, before="", srun=""):
        script = tmp_path / "job.sh"
        script.write_text("\n".join(["#!/bin/bash", *lines, before, f"{srun} {CHECK} {name} > found", ""]))
        _, code = cluster.submitted(script, torch)
        assert code == 0, (tmp_path / "out").read_text()
        return json.loads((tmp_path / "found").read_text())["findings"]

    return findings


def remedy_of(findings):
    [remedy] = [one["remedy"] for one in findings if one["remedy"]]
    return remedy


def severities(findings):
    return {one["severity"] for one in findings}


def test_a_task_with_a_gpu_asks_for_more_than_one_cpu(findings):
    one = ["#SBATCH --gpus=1", "#SBATCH --cpus-per-task=1"]
    remedy = remedy_of(findings("slurm_cpus", *one))
    assert remedy.startswith("#SBATCH --cpus-per-task=")
    assert severities(findings("slurm_cpus", one[0], remedy)) == {"OK"}


def test_srun_gives_a_step_the_cpus_that_the_job_asked_for(findings):
    """This host has fewer CPUs than its nodes say, so a step never has all eight."""
    lines = ["#SBATCH --cpus-per-task=8"]
    remedy = remedy_of(findings("slurm_srun_cpus", *lines, srun="srun"))
    assert severities(findings("slurm_srun_cpus", *lines, before=remedy, srun="srun")) == {"OK"}


def test_srun_takes_the_command_that_asks_for_a_gpu(findings, cluster):
    told = remedy_of(findings("gpu_absent", "#SBATCH --gpus=1"))
    asking = re.match(r"srun --gpus=1 COMMAND  # ", told)
    assert asking, told
    words = told.partition("  # ")[0].replace("COMMAND", "printenv SLURM_STEP_GPUS").split()
    assert re.fullmatch(r"\d\n", cluster.asked(*words))


def test_sbatch_takes_the_options_that_remedies_name(cluster, tmp_path):
    options = ["--mem=1G", "--cpus-per-task=2", "--gres=gpu:1", "--gres-flags=enforce-binding"]
    script = tmp_path / "job.sh"
    script.write_text("\n".join(["#!/bin/sh", *(f"#SBATCH {option}" for option in options), "true", ""]))
    done = cluster.ran("sbatch", "--test-only", str(script))
    assert done.returncode == 0, done.stderr
