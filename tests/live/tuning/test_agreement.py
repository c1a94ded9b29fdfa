"""Outputs with settings beside those without: sound programs, and ones that half precision breaks."""

import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from hands_on import rooted
from torch import nn

from gputune.knobs import amp_dtype
from gputune.live.installer import Installer
from gputune.live.orders import OutputsCompared
from gputune.live.tuning.agreement import Agreement
from gputune.live.tuning.agreement import compared as compared_tensors
from gputune.profile import Guard
from gputune.trials.agreement import verdict

EXPLAINED = amp_dtype.PRECISION_LIMITS.outputs

HALF: dict[str, Any] = {"amp_dtype": "bfloat16"}
CALLS = 4


class Net(nn.Module):
    def __init__(self, does: Any = lambda x: x) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.does = does

    def forward(self, x: Any, **more: Any) -> Any:
        return self.does(self.layers(x), **more)


def started(models: list[Any], values: Any = HALF) -> Agreement:
    roots = [rooted(model, gradients=False) for model in models]
    for root in roots:
        root.in_turn = True
    installer = Installer(roots)
    assert installer.obstacles(values) == {}
    agreement = Agreement(installer, values, EXPLAINED)
    agreement.start()
    return agreement


def compared(model: Any, values: Any = HALF, calls: int = CALLS, **named: Any) -> OutputsCompared:
    agreement = started([model], values)
    torch.manual_seed(1)
    with torch.no_grad():
        for _ in range(calls):
            model(torch.randn(16, 64), **named)
    agreement.stop()
    return agreement.found


def judged(model: Any, **more: Any) -> Guard:
    return verdict(compared(model, **more), EXPLAINED)


def masked(x: Any, value: float) -> Any:
    return x.index_fill(-1, torch.tensor([3]), value)


def wrong(x: Any) -> Any:
    return -x if x.dtype == torch.bfloat16 else x


class Counts(nn.Module):
    """Its buffer counts its calls, and its outputs depend on that."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.count += 1
        return self.net(x) * self.count


TIMES: list[Any] = []


class CountsItself(Counts):
    """What it remembers is an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    def forward(self, x: Any) -> Any:
        self.times += 1
        return self.net(x) * self.times


class Remembers(Counts):
    """What it remembers is nothing that belongs to it."""

    def forward(self, x: Any) -> Any:
        TIMES.append(x)
        return self.net(x) * len(TIMES)


@pytest.mark.parametrize(
    "model",
    [
        Net(), Net(lambda x: {"logits": x, "hidden": (x, None)}), Counts(), CountsItself(),
        nn.Sequential(Net(), nn.Dropout(0.5)),
        nn.Sequential(Net(), nn.BatchNorm1d(10)), Net(lambda x: x.softmax(-1)), Net(lambda x: masked(x, -math.inf)),
        Net(lambda x: masked(x, -1e9)), Net(lambda x: 1e20 * x), Net(lambda x: torch.complex(x.float(), x.float())),
        Net(lambda x: x.argmax(-1)), Net(lambda x: x.sum()),
    ],
    ids=[
        "plain", "nested", "counts", "counts itself", "dropout", "batch norm in training", "probabilities",
        "infinite mask", "mask", "large", "complex", "labels", "one number",
    ],
)  # fmt: skip
def test_sound_models_are_accepted(model: Any) -> None:
    found = judged(model)
    assert found.verdict == "accepted", found.reason


def test_without_a_tensor_nothing_is_known() -> None:
    assert judged(Net(lambda x: None)).reason == "no output was a tensor"


def test_what_is_zero_in_fp32_may_differ_a_little() -> None:
    one = torch.tensor([[0.0, 0.0, 1.0, 2.0]])
    assert 0 < compared_tensors(one, one + torch.tensor([[1e-6, 1e-6, 0.0, 0.0]]), 0.05).error < 1e-5
    assert compared_tensors(torch.zeros(1, 2), torch.ones(1, 2), 0.05).error == math.inf


def test_the_error_is_that_of_half_precision() -> None:
    found = compared(Net())
    assert 0.0005 < found.error < 0.01
    assert found.spread == 0.0
    assert found.calls == CALLS
    assert 0 < found.rows == found.agreeing <= CALLS * 16


@pytest.mark.parametrize(
    "does",
    [
        lambda x: (x + 100) @ torch.eye(10) - 100,
        lambda x: torch.cos((1e3 * x) @ torch.eye(10)),
        lambda x: x.exp() ** 20,
        lambda x: x + 0.3 * x.abs().max() if x.dtype == torch.bfloat16 else x,
        lambda x: x * float("nan") if x.dtype == torch.bfloat16 else x,
        lambda x: x.roll(1, dims=-1) if x.dtype == torch.bfloat16 else x,
        lambda x: x * 1.1 if x.dtype == torch.bfloat16 else x,
        lambda x: wrong(x).argmax(-1),
        lambda x: masked(wrong(x), -math.inf),
        lambda x: masked(wrong(x), -1e9),
        lambda x: masked(wrong(x), -1e4),
        lambda x: masked(wrong(x).float(), torch.finfo(torch.float32).min),
        lambda x: 1e20 * wrong(x),
        lambda x: torch.complex(wrong(x).float(), x.float()),
        lambda x: x[:, :5] if x.dtype == torch.bfloat16 else x,
    ],
    ids=[
        "cancellation", "large angles", "a high power", "put in: shifted", "put in: no number", "put in: another order",
        "put in: a factor", "put in: other labels", "put in: below an infinite mask", "put in: below a mask",
        "put in: below a mask that is rounded", "put in: below the lowest number", "put in: large",
        "put in: complex", "put in: another shape",
    ],
)  # fmt: skip
def test_what_half_precision_breaks_is_refused(does: Any) -> None:
    assert judged(Net(does)).verdict == "refused"


def test_the_program_gets_its_output_with_the_settings_and_its_inputs_are_its_own() -> None:
    given: list[Any] = []
    model = Net(lambda x, cache: (given.append((x.dtype, cache)), cache.append(1), x)[-1])
    cache: list[int] = []
    compared(model, cache=cache, calls=1)
    assert [dtype for dtype, _ in given] == [torch.float32, torch.float32, torch.bfloat16]
    assert [one is cache for _, one in given] == [False, False, True]
    assert cache == [1]


def test_a_model_that_remembers_is_not_known() -> None:
    found = judged(Remembers())
    assert found.verdict == "unknown"
    assert "without any settings" in found.reason


def test_what_cannot_be_copied_is_not_known_and_the_program_goes_on() -> None:
    asked: list[Any] = []
    with Path(os.devnull).open() as stream:
        found = judged(Net(lambda x, stream: (asked.append(x.dtype), x)[1]), stream=stream)
    assert found.verdict == "unknown"
    assert "TypeError" in found.reason
    assert asked == [torch.bfloat16] * CALLS


def test_a_model_and_a_part_of_it_that_are_both_called() -> None:
    """The part's settings must not be in what the whole returns without."""

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Net()

        def forward(self, x: Any) -> Any:
            return torch.cos(1e3 * self.part(x))

    model = Whole()
    agreement = started([model, model.part])
    with torch.no_grad():
        for _ in range(CALLS):
            model.part(torch.randn(16, 64))
            model(torch.randn(16, 64))
    agreement.stop()
    found = verdict(agreement.found, EXPLAINED)
    assert found.verdict == "refused"
    assert agreement.found.spread == 0.0


def test_afterwards_the_model_is_as_it_was() -> None:
    model = Net()
    compared(model)
    with torch.no_grad():
        before = model.layers(torch.ones(1, 64))
        assert torch.equal(model(torch.ones(1, 64)), before)
