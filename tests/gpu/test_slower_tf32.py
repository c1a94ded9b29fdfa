"""TF32 is timed within a program, but never in a graph that the program captures."""

import json
import os
import subprocess
import sys

import pytest

from gputune.runtime.environment import SHIM

pytestmark = pytest.mark.gpu

SOLVER = """
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
CAPTURED = """
import json, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")
def step():
    optimizer.zero_grad(set_to_none=True)
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    return loss
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(WARM):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    level = torch.get_float32_matmul_precision()
    loss = step()
losses = []
for _ in range(60):
    graph.replay()
    losses.append(loss.item())
print(json.dumps([level, torch.get_float32_matmul_precision(), losses[0] > losses[-1] > 0]))
"""


def ran(program):
    payload = {"settings": {"matmul_precision": "tf32"}}
    env = {**os.environ, "PYTHONPATH": str(SHIM), "GPUTUNE_APPLY": json.dumps(payload)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_a_solver_that_takes_more_rounds_with_tf32_is_left_without_it():
    levels, said = ran("import json\n" + SOLVER)
    assert levels[-1] == "highest"
    assert "matmul_precision tf32 was turned off: a step takes" in said


@pytest.mark.parametrize("warm", [3, 5, 6, 7, 8])
def test_a_captured_step_has_tf32_whenever_it_is_captured(warm):
    noted, said = ran(CAPTURED.replace("WARM", str(warm)))
    assert noted == ["high", "high", True]
    assert "gputune: " not in said
