"""An exact Gaussian process learns under `gputune apply` what it learns without it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

PROFILE = Path(__file__).parents[2] / "profiles" / "nvidia-h200.yaml"
APPLY = ("-m", "gputune", "apply", "--ignore-fingerprint", str(PROFILE), "--", sys.executable)
PROCESS = """
import json, torch
torch.manual_seed(0)
x = torch.rand(1000, 8, device="cuda", dtype=torch.float64)
y = (torch.sin(6 * x[:, 0]) + x[:, 1] + 0.05 * torch.randn(1000, device="cuda", dtype=torch.float64)).float()
x = x.float()
raw = torch.nn.Parameter(torch.zeros(10, device="cuda"))
optimizer = torch.optim.Adam([raw], lr=0.05)
def likelihood():
    z = x / raw[:8].exp()
    squares = z.square().sum(1)
    distances = (squares[:, None] + squares - 2 * z @ z.T).clamp_min(0)
    kernel = raw[8].exp() * torch.exp(-0.5 * distances) + (0.1 * raw[9].exp() + 1e-3) * torch.eye(len(x), device="cuda")
    factor = torch.linalg.cholesky(kernel)
    fit = y @ torch.cholesky_solve(y[:, None], factor)[:, 0]
    return -(0.5 * fit + factor.diagonal().log().sum()) / len(x)
for step in range(200):
    optimizer.zero_grad()
    loss = -likelihood()
    loss.backward()
    optimizer.step()
print(json.dumps([-loss.item(), torch.get_float32_matmul_precision()]))
"""


def ran(*words):
    done = subprocess.run(
        [sys.executable, *words, "-c", PROCESS], capture_output=True, text=True, check=True, env=os.environ.copy()
    )
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_its_likelihood_after_200_steps_is_as_without_gputune():
    (plain, _), _ = ran()
    (applied, level), said = ran(*APPLY)
    assert applied == pytest.approx(plain, abs=0.01)
    assert level == "highest"
    assert "matmul_precision tf32 was turned off: the loss factorises matrices" in said
