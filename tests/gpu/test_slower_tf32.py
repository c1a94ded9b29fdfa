"""TF32 goes off in a solver that takes more rounds with it."""

import json
import os
import subprocess
import sys

import pytest

from gputune.runtime.environment import SHIM

pytestmark = pytest.mark.gpu

SOLVER = """
import json
import torch
torch.manual_seed(0)
layer = torch.nn.Linear(1024, 1024, bias=False, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
given = torch.randn(1024, 1024, device="cuda")
near = torch.nn.init.orthogonal_(torch.empty(1024, 1024, device="cuda"))
levels = []
for step in range(80):
    optimizer.zero_grad()
    matrix, x = 0.3 * near + 0 * layer.weight, torch.zeros_like(given)
    for _ in range(60):  # until it is exact enough, as solvers of equations do
        x = given - x @ matrix
        with torch.no_grad():
            off = (x.double() + x.double() @ matrix.double() - given.double()).norm() / given.norm()
        if off < 1e-6:
            break
    x.square().mean().backward()
    optimizer.step()
    levels.append(torch.get_float32_matmul_precision())
print(json.dumps(levels))
"""


def ran(program):
    payload = {"settings": {"matmul_precision": "tf32"}}
    env = {**os.environ, "PYTHONPATH": str(SHIM), "GPUTUNE_APPLY": json.dumps(payload)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_it_goes_off_and_is_told():
    levels, said = ran(SOLVER)
    assert levels[-1] == "highest"
    assert "matmul_precision tf32 was turned off: a step takes" in said
