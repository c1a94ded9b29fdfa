"""A profile applied to a program on a real GPU: flags read back, and numerical errors show that they took effect."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gputune.profile import load, save

pytestmark = pytest.mark.gpu

PROFILE = Path(__file__).parents[2] / "profiles" / "nvidia-h200.yaml"
PROGRAM = """
import json, torch
x = torch.randn(512, 4096, device="cuda"); w = torch.randn(512, 4096, device="cuda")
exact = x.double() @ w.double().T
c, k = torch.randn(2, 64, 28, 28, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda") / 24
conv = torch.nn.functional.conv2d
exact_conv = conv(c.double(), k.double(), padding=1)
print(json.dumps({
    "matmul": torch.get_float32_matmul_precision(),
    "allow_tf32": torch.backends.cuda.matmul.allow_tf32,
    "cudnn_tf32": torch.backends.cudnn.allow_tf32,
    "cudnn_benchmark": torch.backends.cudnn.benchmark,
    "matmul_error": float(((x @ w.T).double() - exact).norm() / exact.norm()),
    "conv_error": float((conv(c, k, padding=1).double() - exact_conv).norm() / exact_conv.norm()),
}))
"""

CAPTURED = """
import json, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 16, device="cuda"), torch.randn(64, 4, device="cuda")
def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return loss
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
losses = []
for _ in range(10):
    graph.replay()
    losses.append(loss.item())
print(json.dumps(losses))
"""
"""As torch's documentation captures a training: three steps before it."""


def run(*arguments, **environ):
    import os

    result = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, env={**os.environ, **environ}
    )
    return json.loads(result.stdout), result.stderr


def applied(profile, *options, **environ):
    return run("-m", "gputune", "apply", *options, profile, "--", sys.executable, "-c", PROGRAM, **environ)


def flags(answer):
    return {name: value for name, value in answer.items() if not name.endswith("_error")}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    from gputune.host import Host
    from gputune.runtime.local_fingerprint import local_fingerprint

    path = tmp_path_factory.mktemp("here") / "profile.yaml"
    save(replace(load(PROFILE), fingerprint=local_fingerprint(Host())), path)
    return path


def test_without_gputune_fp32_matmul_is_exact():
    answer, _ = run("-c", PROGRAM)
    assert flags(answer) == {"matmul": "highest", "allow_tf32": False, "cudnn_tf32": True, "cudnn_benchmark": False}
    assert answer["matmul_error"] < 1e-5 < answer["conv_error"]


def test_applied_flags_read_back_and_take_effect(here):
    answer, _ = applied(here)
    assert flags(answer) == {"matmul": "high", "allow_tf32": True, "cudnn_tf32": True, "cudnn_benchmark": False}
    assert 1e-4 < answer["matmul_error"] < 1e-3
    assert 1e-4 < answer["conv_error"] < 1e-3


def test_full_fp32_convolutions_take_effect(here, tmp_path):
    profile = load(here)
    exact = replace(profile.settings["cudnn_tf32"], value=False)
    save(replace(profile, settings={**profile.settings, "cudnn_tf32": exact}), tmp_path / "exact.yaml")
    answer, _ = applied(tmp_path / "exact.yaml")
    assert answer["cudnn_tf32"] is False
    assert answer["conv_error"] < 1e-5


def test_the_override_that_defeats_a_flag_is_said(here):
    answer, stderr = applied(here, NVIDIA_TF32_OVERRIDE="0")
    assert answer["allow_tf32"] is True
    assert answer["matmul_error"] < 1e-5
    assert "NVIDIA_TF32_OVERRIDE" in stderr


def test_another_gpus_profile_is_skipped_and_said_and_can_be_forced(here, tmp_path):
    profile = load(here)
    other = replace(
        profile, fingerprint=replace(profile.fingerprint, gpu="NVIDIA A100-SXM4-80GB", compute_capability="8.0")
    )
    save(other, tmp_path / "other.yaml")
    answer, stderr = applied(tmp_path / "other.yaml")
    assert answer["allow_tf32"] is False
    assert "A100" in stderr
    answer, _ = applied(tmp_path / "other.yaml", "--ignore-fingerprint")
    assert answer["allow_tf32"] is True


def test_a_training_that_becomes_a_cuda_graph_learns_the_same():
    from gputune.runtime.environment import SHIM

    values = {"amp_dtype": "bfloat16", "compile": True, "fused_optimizer": True}
    payload = json.dumps({"settings": {}, "advice": {"device": "cuda", "general": values}})
    plain, _ = run("-c", CAPTURED)
    answer, said = run("-c", CAPTURED, GPUTUNE_APPLY=payload, PYTHONPATH=SHIM)
    assert "put into Sequential (mlp): amp_dtype bfloat16, compile, fused_optimizer" in said
    assert answer == pytest.approx(plain, rel=0.02)


def test_in_process_with_everything_a_script_can_use(here):
    program = """
import json, gputune
tuning = gputune.apply(PATH)
import torch
model = tuning.prepare(torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3), torch.nn.ReLU()).cuda())
with tuning.autocast():
    out = model(torch.randn(8, 64, 32, 32, device="cuda"))
print(json.dumps({"dtype": str(out.dtype), "last": out.is_contiguous(memory_format=torch.channels_last),
                  "scaler": tuning.grad_scaler().is_enabled(), "pad": tuning.pad(50257), "family": tuning.family,
                  "tf32": torch.backends.cuda.matmul.allow_tf32}))
"""
    answer, _ = run("-c", program.replace("PATH", repr(str(here))))
    expected = {"last": True, "scaler": True, "pad": 50264, "family": "convnet", "tf32": True}
    assert answer == {"dtype": "torch.float16", **expected}
