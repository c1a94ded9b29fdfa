"""Inference mode around a model's call, in a program that trains nothing."""

from typing import Any

import pytest
import torch
from hands_on import mlp, rooted
from torch import nn
from torch.autograd import forward_ad

from gputune.knobs import inference_mode as knob

X = torch.ones(2, 4)


class Noting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(4, 4), []

    def forward(self, x: Any) -> Any:
        self.seen.append(torch.is_inference_mode_enabled())
        return {"out": self.layer(x), "as given": x}


def test_calls_without_gradients_are_in_it_and_return_usual_tensors() -> None:
    model = Noting()
    root = rooted(model, gradients=False)
    assert knob.obstacle(root, True) is None
    assert knob.turn_on(root, True) is True
    root.claim()
    with torch.no_grad():
        output = model(X)
    model(X)
    knob.turn_off(root)
    with torch.no_grad():
        model(X)
    assert model.seen == [True, False, False]
    assert not output["out"].is_inference()
    assert output["as given"] is X
    output["out"] += 1  # which an inference tensor would refuse


class Keeps(nn.Module):
    """As a cache of rotary embeddings is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.kept = nn.Linear(4, 4), None

    def forward(self, x: Any) -> Any:
        if self.kept is None:
            self.kept = torch.cos(torch.arange(4.0))
        return self.layer(x * self.kept)


def test_what_the_model_keeps_becomes_usual_and_the_setting_is_taken_out() -> None:
    model, failed = Keeps(), []
    root = rooted(model, gradients=False, failed=lambda name, why: failed.append((name, why)))
    knob.turn_on(root, True)
    root.claim()
    with torch.no_grad():
        model(X)
    assert failed == [("inference_mode", "the model keeps kept, which is made in inference mode")]
    assert root.call.around is None
    model(X).sum().backward()  # which would raise with what inference mode made


@pytest.mark.slow
def test_forward_mode_differentiation_goes_on() -> None:
    model = mlp()
    root = rooted(model, gradients=False)
    knob.turn_on(root, True)
    root.claim()
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(X, torch.ones_like(X))
        assert forward_ad.unpack_dual(model(dual)).tangent is not None
