"""The HealthCheckProgram, as a file. tests/slurm gives it to a real Slurm."""

import re
import sys
from pathlib import Path

import pytest
from linted import linted
from making import command, environ, executable

from gputune.deploy import node_checks
from gputune.deploy.slurm import health_check

pytestmark = pytest.mark.cluster


def test_it_asks_nothing_about_its_own_interpreter() -> None:
    """A torch without CUDA beside gputune is no reason to drain a node."""
    assert not [name for name in node_checks.NAMES if name.startswith(("torch", "library", "cache"))]


def test_all_its_deadlines_together_are_below_slurmd_s() -> None:
    seconds = [sum(map(int, pair)) for pair in re.findall(r"timeout -k (\d+) (\d+)", health_check("python", True))]
    one_call = [int(text) for text in re.findall(r"(?<!-)timeout (\d+)", health_check("python", True))]
    assert (len(seconds), len(one_call)) == (2, 3)
    assert sum(seconds) + max(one_call) * 2 < 60


def test_an_answer_that_takes_long_is_waited_for(tmp_path: Path) -> None:
    """As with eight GPUs, and a torch on a cold disk. The deadline of reading it begins when it is there."""
    answer = '{"findings": [{"check": "ecc_errors", "severity": "ERROR", "subject": "GPU 3", "message": "7 errors"}]}'
    script = f"#!/bin/sh\ncase $3 in -m) sleep 6; echo '{answer}' ;; *) exec {sys.executable} \"$@\" ;; esac\n"
    slow = executable(tmp_path / "python", script)
    done = command(["bash", "-s"], environ(SLURMD_NODENAME="n1"), input=health_check(str(slow), drain=False))
    assert (done.returncode, done.stderr) == (0, "gputune: n1: error: ecc_errors: GPU 3: 7 errors\n")


@pytest.mark.parametrize("drain", [False, True])
def test_it_passes_shellcheck(drain: bool) -> None:
    linted(health_check("/opt/it's @drain@/python", drain))
