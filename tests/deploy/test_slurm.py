"""`gputune deploy slurm`: what it prints for which words, what it refuses, and what the TaskProlog and the
HealthCheckProgram do, run by bash. tests/slurm gives them to a real Slurm.
"""

import re
import sys
from pathlib import Path

import pytest
from forked import gputune, refusal
from linted import linted
from making import command, environ, executable, profile, written

from gputune.deploy import node_checks
from gputune.deploy.slurm import health_check, task_prolog
from gputune.host import Host
from gputune.runtime.local_fingerprint import local_fingerprint

GPUTUNE = [sys.executable, "-P", "-m", "gputune"]


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


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    return written(folder, profile({"matmul_precision": "tf32"}, fingerprint=local_fingerprint(Host())))


def run(script: str, **variables: str):
    """Slurm reads what goes to stderr too."""
    return command(["bash", "-c", f"exec 2>&1\n{script}"], env=environ(**variables))


@pytest.mark.slow
def test_it_says_what_slurm_understands_and_nothing_else(path: str) -> None:
    done = run(task_prolog(path, GPUTUNE))
    assert done.returncode == 0
    assert 'export GPUTUNE_APPLY={"settings":{"matmul_precision":"tf32"}}\n' in done.stdout
    assert all(line.startswith("export ") for line in done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("gputune", [GPUTUNE, ["/no/such/gputune"], ["sh", "-c", "echo export HALF=1; exit 1"]])
@pytest.mark.parametrize("content", [None, "settings: [", ""])
def test_what_is_wrong_is_not_the_task_s_business(path: str, gputune: list[str], content: str | None) -> None:
    Path(path).unlink()
    if content is not None:
        Path(path).write_text(content)
    done = run(task_prolog(path, gputune))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_without_a_profile_of_this_machine_auto_does_nothing(tmp_path: Path) -> None:
    done = run(task_prolog("auto", GPUTUNE), XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.cluster
@pytest.mark.parametrize("profile", ["auto", "/shared/it's $HOME/@gputune@.yaml"])
def test_a_task_prolog_passes_shellcheck(profile: str) -> None:
    linted(task_prolog(profile, ["/opt/a b/gputune"]))


def test_a_health_check_asks_nothing_about_its_own_interpreter() -> None:
    """A torch without CUDA beside gputune is no reason to drain a node."""
    assert not [name for name in node_checks.NAMES if name.startswith(("torch", "library", "cache"))]


def test_all_deadlines_of_a_health_check_together_are_below_slurmd_s() -> None:
    seconds = [sum(map(int, pair)) for pair in re.findall(r"timeout -k (\d+) (\d+)", health_check("python", True))]
    one_call = [int(text) for text in re.findall(r"(?<!-)timeout (\d+)", health_check("python", True))]
    assert (len(seconds), len(one_call)) == (2, 3)
    assert sum(seconds) + max(one_call) * 2 < 60


@pytest.mark.slow
def test_an_answer_that_takes_long_is_waited_for(tmp_path: Path) -> None:
    """As with eight GPUs, and a torch on a cold disk. The deadline of reading it begins when it is there."""
    answer = '{"findings": [{"check": "ecc_errors", "severity": "ERROR", "subject": "GPU 3", "message": "7 errors"}]}'
    script = f"#!/bin/sh\ncase $3 in -m) sleep 6; echo '{answer}' ;; *) exec {sys.executable} \"$@\" ;; esac\n"
    slow = executable(tmp_path / "python", script)
    done = command(["bash", "-s"], environ(SLURMD_NODENAME="n1"), input=health_check(str(slow), drain=False))
    assert (done.returncode, done.stderr) == (0, "gputune: n1: error: ecc_errors: GPU 3: 7 errors\n")


@pytest.mark.cluster
@pytest.mark.parametrize("drain", [False, True])
def test_a_health_check_passes_shellcheck(drain: bool) -> None:
    linted(health_check("/opt/it's @drain@/python", drain))
