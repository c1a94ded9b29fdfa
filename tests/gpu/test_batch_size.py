"""A search on a real GPU whose memory is held to a few GiB: the batch that it names runs, and one a tenth larger does
not.
"""

import json
import subprocess
import sys

import pytest
from making import before_others, environ, python, serving

pytestmark = pytest.mark.gpu

TRAINING = """
import torch
GIB = 4
def make_training():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(GIB * 2**30 / total)
    width = 1024
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(width, width), torch.nn.GELU())]
    network = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(network.parameters())
    def step(batch_size):
        network(torch.randn(batch_size, 16, width, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step
"""
RUNS = """
import sys, torch, train
step = train.make_training()
try:
    for _ in range(3):
        step(int(sys.argv[1]))
    torch.cuda.synchronize()
except torch.cuda.OutOfMemoryError:
    sys.exit(9)
"""


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training")
    (folder / "train.py").write_text(TRAINING)
    words = [sys.executable, "-m", "gputune", "batch-size", "train.py:make_training", "--json"]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=150, check=False)
    assert result.returncode == 0, result.stderr
    return folder, json.loads(result.stdout)


def code_of(folder, batch):
    """How a program of its own with this batch ends: 0, or 9 for a lack of memory."""
    return python("-c", RUNS, str(batch), env=environ(PYTHONPATH=before_others(folder))).returncode


def test_the_largest_that_ran_runs_and_a_tenth_more_does_not(searched):
    folder, found = searched
    assert code_of(folder, found["largest_run"]) == 0
    assert code_of(folder, int(1.1 * found["largest_run"]) + 1) == 9


def test_the_recommended_one_leaves_the_margin_of_the_limit(searched):
    _, found = searched
    trial = next(trial for trial in found["trials"] if trial["batch"] == found["largest"])
    assert trial["total_bytes"] == pytest.approx(4 << 30, rel=0.01)
    assert 0.1 <= trial["left_bytes"] / trial["total_bytes"] < 0.2
    assert found["largest"] < found["largest_run"]


def test_the_fastest_was_timed_in_turn_with_others(searched):
    _, found = searched
    fastest = found["fastest"] or found["seeming"]
    assert fastest in {row["params"]["batch"] for row in found["timed"]}
    assert len(found["timed"]) > 1
    assert fastest <= found["largest"]


def test_no_worker_is_left(searched):
    assert not serving()
