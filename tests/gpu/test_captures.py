"""A program that captures CUDA graphs computes what it does without gputune, whenever it captures them."""

import json
import os
import subprocess
import sys

import pytest

from gputune.runtime.environment import SHIM

pytestmark = pytest.mark.gpu

PROGRAM = """
import json, sys
import torch
how, warm = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
nn = torch.nn
images = nn.Unflatten(1, (4, 8, 8)), nn.Conv2d(4, 16, 3, padding=1), nn.Tanh(), nn.Flatten()
model = nn.Sequential(*images, nn.Linear(1024, 256), nn.Tanh(), nn.Linear(256, 256)).cuda()
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
    for _ in range(warm):
        step()
torch.cuda.current_stream().wait_stream(side)
again = step
if how == "step":
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    def again():
        graph.replay()
        return loss
else:
    model = torch.cuda.make_graphed_callables(model, (x,))
losses = [again().item() for _ in range(60)]
print(json.dumps([losses[0], losses[-1]]))
"""


def ran(advice, *words):
    flags = {"matmul_precision": "tf32", "cudnn_benchmark": True}
    payload = {"settings": flags, "advice": {"device": "cuda", "general": advice}}
    more = {"PYTHONPATH": str(SHIM), "GPUTUNE_APPLY": json.dumps(payload)} if advice else {}
    words = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **more})
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_a_graph_has_in_it_what_was_tested():
    _, said = ran({"amp_dtype": "bfloat16"}, "step", "3000")
    assert "captures a CUDA graph" not in said


@pytest.mark.parametrize("how", ["step", "callables"])
@pytest.mark.parametrize("warm", [0, 1, 2, 3, 5, 12, 60, 3000])
def test_its_losses_are_as_without_gputune(how, warm):
    everything = {"amp_dtype": "bfloat16", "channels_last": True, "compile": True, "fused_optimizer": True}
    if how == "step" and warm == 0:
        pytest.skip("it cannot capture the optimizer's first step")
    plain, _ = ran({}, how, str(warm))
    tuned, _ = ran(everything, how, str(warm))
    assert tuned == pytest.approx(plain, rel=0.2, abs=1e-4)
