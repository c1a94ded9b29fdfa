"""`gputune deploy slurm`: what it prints for which words, and what it refuses."""

import sys

import pytest
from forked import gputune, refusal

pytestmark = pytest.mark.cluster


def test_an_sbatch_has_a_task_for_each_gpu_by_default() -> None:
    sbatch = ("deploy", "slurm", "sbatch", "--gpus-per-node=8")
    lines = gputune(*sbatch, "--nodes=2", "--", "python", "-u", "a.py").stdout.splitlines()
    assert lines[:4] == ["#!/bin/bash", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=8", "#SBATCH --gpus-per-node=8"]
    assert "command=(python -u a.py)" in lines
    lines = gputune(*sbatch, "--tasks-per-node=1", "--", "torchrun").stdout.splitlines()
    assert lines[1:4] == ["#SBATCH --nodes=1", "#SBATCH --ntasks-per-node=1", "#SBATCH --gpus-per-node=8"]


def test_it_starts_the_gputune_that_printed_it_or_the_image_s() -> None:
    folder = sys.executable.rpartition("/")[0]
    own = gputune("deploy", "slurm", "sbatch", "--", "a").stdout
    assert f"gputune=({folder}/" in own
    assert "gputune=(gputune)" in gputune("deploy", "slurm", "sbatch", "--image", "i", "--", "a").stdout
    assert f"$({folder}/" in gputune("deploy", "slurm", "task-prolog").stdout
    assert f"python={sys.executable}\n" in gputune("deploy", "slurm", "health-check").stdout


def test_draining_is_only_on_demand() -> None:
    assert "\ndrain=no\n" in gputune("deploy", "slurm", "health-check").stdout
    assert "\ndrain=yes\n" in gputune("deploy", "slurm", "health-check", "--drain").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["job"], "job: there is no such file for Slurm; choose from sbatch, task-prolog, health-check"),
        (["sbatch"], "sbatch: the command is missing; write it at the end: gputune deploy slurm sbatch -- python"),
        (["sbatch", "--drain", "--", "a"], "--drain: does not apply to sbatch; omit it, or use --nodes"),
        (["task-prolog", "--nodes=2"], "--nodes: does not apply to task-prolog; omit it"),
        (["health-check", "--", "a"], "-- CMD: does not apply to health-check; omit it"),
        (["task-prolog", "--profile", "p.yaml"], "--profile p.yaml: is not an absolute path, and tasks start in any"),
        (["task-prolog", "--profile", "/a\nb"], "--profile '/a\\nb': is not printable text on one line; write a name"),
        (["sbatch", "--image", "", "--", "a"], "--image '': is not printable text on one line; write a name without"),
        (["sbatch", "--nodes=0", "--", "a"], "invalid value for '--nodes'"),
    ],
)
def test_a_refusal_is_one_line(words: list[str], said: str) -> None:
    assert refusal("deploy", "slurm", *words).startswith(f"gputune: {said}")
