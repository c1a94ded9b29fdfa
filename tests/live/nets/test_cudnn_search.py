"""cuDNN does not search in the steps of a training before settings are turned on in its models."""

import json
from collections.abc import Iterator

import pytest
import torch
from hands_on import capture, unfollowed
from making import environ, python

from gputune.live import flags
from gputune.live.nets import cudnn_search, later_settings
from gputune.live.nets.cudnn_search import PASSES
from gputune.runtime.environment import SHIM

PROGRAM = """
import torch
from torch import nn
class Model(nn.Linear):
    def forward(self, inputs):
        print(int(torch.backends.cudnn.benchmark), end="")
        return super().forward(inputs).sigmoid()
model, inputs = Model(8, 1), torch.ones(4, 8)
optimizer = torch.optim.SGD(model.parameters())
for step in range(6):
    {step}
"""
TRAINS = "optimizer.zero_grad(); nn.functional.binary_cross_entropy(model(inputs), torch.ones(4, 1)).backward(); "


@pytest.mark.parametrize(
    ("step", "searched"),
    [
        (TRAINS + "optimizer.step()", "101111"),  # nothing is put into such a model
        ("with torch.no_grad(): model(inputs)", "111111"),
    ],
)
def test_it_searches_as_soon_as_all_is_decided_and_always_where_nothing_is_trained(step: str, searched: str) -> None:
    advice = {"device": "cpu", "general": {"amp_dtype": "bfloat16"}}
    payload = {"settings": {"cudnn_benchmark": True}, "advice": advice}
    env = environ(PYTHONPATH=SHIM, GPUTUNE_APPLY=json.dumps(payload))
    assert python("-c", PROGRAM.format(step=step), env=env).stdout == searched


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program in which gputune has turned cuDNN's search on."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    for held in ("rows", "_ours", "_aside"):
        monkeypatch.setattr(flags, held, {})
    monkeypatch.setattr(later_settings, "_flags", {})
    monkeypatch.setattr(cudnn_search, "_begun", [])
    flags.set_now("cudnn_benchmark", True)
    with unfollowed():
        cudnn_search.watch()
        yield
        cudnn_search.leave()


def backward() -> bool:
    """Run a backward pass, and return whether cuDNN searches then."""
    torch.ones(1, requires_grad=True).sum().backward()
    return torch.backends.cudnn.benchmark


def test_meanwhile_its_row_says_why(watched: None) -> None:
    assert [backward(), backward()] == [False, False]
    assert [row.why for row in flags.rows_now()] == ["in this process; off until it is clear what else stays on"]


def test_it_waits_for_some_passes_only(watched: None) -> None:
    assert [backward() for _ in range(PASSES + 1)] == [False] * PASSES + [True]


def test_it_never_searches_within_a_graph(watched: None) -> None:
    backward()
    capture()
    assert not backward()
    assert flags.rows["cudnn_benchmark"].why == "the program captures a CUDA graph, in which cuDNN cannot search"


def test_a_program_that_captures_before_its_first_backward_pass_goes_on_searching(watched: None) -> None:
    capture()
    assert backward()
