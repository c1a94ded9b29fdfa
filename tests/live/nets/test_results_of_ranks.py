"""The ranks of a job compare their results at the same call, and a rank that turns a setting off holds up no other."""

import json
from pathlib import Path
from typing import Any

import pytest
from making import environ, not_aborted, python

from gputune.runtime.environment import SHIM

PROGRAM = """
import json, os, sys
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional, all_reduce
from torch.distributed.nn import all_reduce as nn_all_reduce
dist.init_process_group("gloo")
rank = dist.get_rank()
calls, steps, linear = [], [], nn.functional.linear
def noted(*given):
    calls.append(torch.is_autocast_enabled("cpu"))
    return linear(*given)
nn.functional.linear = noted
class Rotated(nn.Module):
    "Turns what it is given by a multiple of a position, which bfloat16 knows exactly or not."
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
    def forward(self, x, first):
        out = self.layer(x)
        if "imported" in sys.argv:
            all_reduce(torch.ones(1))
        if "with gradients" in sys.argv:
            nn_all_reduce(torch.ones(1, requires_grad=True))
        if "functional" in sys.argv:
            functional.all_reduce(torch.ones(1), "sum", dist.group.WORLD).wait()
        return out * (torch.arange(first, first + 8).to(out.dtype) - first).cos()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(Rotated())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
torch.manual_seed(rank)
for step in range(12):
    optimizer.zero_grad()
    loss = model(torch.randn(64, 8), 65536 if str(rank) in sys.argv[2] else 0).square().mean()
    calls.append(None)
    loss.backward()
    optimizer.step()
    steps.append(list(calls))
    calls.clear()
weights = torch.cat([one.detach().flatten() for one in model.parameters()])
others = [torch.empty_like(weights) for _ in range(2)]
dist.all_gather(others, weights)
with open(f"{sys.argv[1]}/{rank}", "w") as file:
    json.dump({"steps": steps, "are_alike": torch.equal(*others)}, file)
dist.destroy_process_group()
"""


def ranks(folder: Path, far: str, *more: str) -> list[dict[str, Any]]:
    """What the two ranks note, of which those in `far` have positions that bfloat16 does not know."""
    (folder / "train.py").write_text(PROGRAM)
    advice = {"device": "cpu", "general": {"amp_dtype": "bfloat16"}}
    env = environ(
        OMP_NUM_THREADS="1",
        PYTHONPATH=SHIM,
        GPUTUNE_APPLY=json.dumps({"settings": {"cudnn_benchmark": True}, "advice": advice}),
    )
    words = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = not_aborted(lambda: python(*words, str(folder / "train.py"), str(folder), far, *more, env=env, cwd=folder))
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads((folder / str(rank)).read_text()) for rank in range(2)]


def compared_at(rank: dict[str, Any]) -> list[int]:
    """The steps after whose loss the model was called again."""
    return [number for number, calls in enumerate(rank["steps"]) if calls[-1] is not None]


@pytest.mark.cluster
@pytest.mark.parametrize("far", ["none", "1", "01"])
def test_both_compare_at_the_same_call_and_stay_alike(tmp_path: Path, far: str) -> None:
    both = ranks(tmp_path, far)
    first, second = map(compared_at, both)
    assert first == second
    assert len(first) == 1
    assert [rank["steps"][-1] for rank in both] == [[str(number) not in far, None] for number in range(2)]
    assert all(rank["are_alike"] for rank in both)


@pytest.mark.cluster
@pytest.mark.parametrize("reduced", ["imported", "with gradients", "functional"])
def test_a_model_in_which_ranks_wait_for_each_other_is_not_compared(tmp_path: Path, reduced: str) -> None:
    assert [compared_at(rank) for rank in ranks(tmp_path, "1", reduced)] == [[], []]
