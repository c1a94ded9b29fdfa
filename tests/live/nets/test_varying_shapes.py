"""cuDNN's own search goes off if a model is called with many shapes."""

from typing import Any

import pytest
import torch
from hands_on import rooted
from torch import nn

from gputune.live import flags
from gputune.live.installer import Installer
from gputune.live.nets.varying_shapes import MOST, VaryingShapes
from gputune.live.suspects import OneCall


def called(shapes: int) -> list[str]:
    """What is said of a model that is called with so many shapes."""
    said: list[str] = []
    model = nn.Conv2d(1, 1, 3)
    root = rooted(model)
    root.say = said.append
    net = VaryingShapes(root)
    root.call.suspects.nets.append(net)
    for size in range(shapes):
        inputs = (torch.ones(1, 1, 3 + size, 3),)
        net.called(OneCall(run=model, uncompiled=None, inputs=inputs, named={}, otherwise=False), None, None)
    return said


@pytest.fixture(autouse=True)
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    monkeypatch.setattr(flags, "rows", {})
    monkeypatch.setattr(flags, "_ours", {})
    flags.set_now("cudnn_benchmark", True)


def test_many_shapes_turn_it_off_and_say_so() -> None:
    assert called(MOST + 1) == [f"cudnn_benchmark turned off: Conv2d: it is called with more than {MOST} shapes"]
    assert not torch.backends.cudnn.benchmark
    assert flags.rows["cudnn_benchmark"].status == "skipped"


def test_few_leave_it_on() -> None:
    assert called(MOST) == []
    assert torch.backends.cudnn.benchmark


def test_channels_last_goes_off_too() -> None:
    model, off = nn.Conv2d(1, 2, 3), list[str]()
    root = rooted(model, failed=lambda names, why: off.extend(names))
    installer = Installer([root], guarded=True)
    assert installer.obstacles({"channels_last": True}) == {}
    installer.switch({"channels_last": True})
    root.call.suspects.nets.append(VaryingShapes(root))
    for size in range(MOST + 1):
        model(torch.ones(1, 1, 3 + size, 3))
    assert (off, model.weight.is_contiguous()) == (["channels_last"], True)
