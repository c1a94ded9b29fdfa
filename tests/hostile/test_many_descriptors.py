"""gputune below a program that left two thousand files open to it, or that allows it hardly any."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import stand_in
from making import command, environ, executable, profile, written

import gputune

MANY = """
import os, resource, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
if most != resource.RLIM_INFINITY and most < 2100:
    sys.exit(77)
resource.setrlimit(resource.RLIMIT_NOFILE, (2100, most))
for _ in range(2000):
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
os.execvp(sys.argv[1], sys.argv[1:])
"""
GPUTUNE = [sys.executable, "-P", "-m", "gputune"]
TRAINS = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def beside_many(*words: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    done = command([sys.executable, "-c", MANY, *GPUTUNE, *words], environ(**variables), cwd=cwd)
    if done.returncode == 77:
        pytest.skip("the limit of open files cannot be raised to 2,100")
    return done


def test_nothing_waits_with_select_which_takes_no_descriptor_above_1023() -> None:
    for file in Path(gputune.__file__).parent.rglob("*.py"):
        text = file.read_text()
        assert "select.select" not in text, file
        assert "selectors" not in text, file


@pytest.mark.slow
class TestTwoThousand:
    def test_a_check_answers(self, tmp_path: Path) -> None:
        path = stand_in.torch(tmp_path)
        found = json.loads(beside_many("check", "--json", cwd=tmp_path, PYTHONPATH=path).stdout)
        assert found["facts"]["libraries"]["torch"]

    def test_a_probe_measures(self, tmp_path: Path) -> None:
        stand_in.torch(tmp_path)
        path = stand_in.benches(tmp_path, precision="yield told('precision')")
        words = ["probe", "--device=cpu", "--budget=quick", "--only=precision", "-o", "p.yaml"]
        done = beside_many(*words, cwd=tmp_path, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr
        assert "metric: told" in (tmp_path / "p.yaml").read_text()

    def test_the_command_has_them_too(self, tmp_path: Path) -> None:
        path = written(tmp_path, profile())
        done = beside_many("apply", "--quiet", path, "--", "sh", "-c", "ls /proc/self/fd | wc -l", cwd=tmp_path)
        assert int(done.stdout) >= 2000, done.stderr

    def test_a_tune_hears_its_program(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text(TRAINS)
        words = ["tune", "-o", "p.yaml", "--", sys.executable, "train.py"]
        done = beside_many(*words, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path))
        assert done.returncode in (0, 3), done.stderr  # 3 where these few steps, or a busy machine, tell nothing
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("most", [8, 16, 64])
def test_with_few_descriptors_the_command_runs(most: int, tmp_path: Path) -> None:
    path = written(tmp_path, profile())
    script = executable(tmp_path / "few", f'#!/bin/sh\nulimit -n {most}\nexec "$@"\n')
    done = command([str(script), *GPUTUNE, "apply", "--quiet", path, "echo", "ran"], environ())
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
