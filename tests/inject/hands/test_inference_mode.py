"""Inference mode around a model's call, in a program that trains nothing."""

from typing import Any

import torch
from hands_on import mlp, rooted
from torch import nn

from gputune.inject.applied import Reason
from gputune.inject.hands import inference_mode as hand

X = torch.ones(2, 4)


class Noting(nn.Module):
    """Whether each call was in inference mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(4, 4), []

    def forward(self, x: Any) -> Any:
        self.seen.append(torch.is_inference_mode_enabled())
        return {"out": self.layer(x), "as given": x}


def test_calls_without_gradients_are_in_it_and_return_usual_tensors() -> None:
    model = Noting()
    root = rooted(model, gradients=False)
    assert hand.obstacle(root, True) is None
    assert hand.put_in(root, True) is True
    with torch.no_grad():
        output = model(X)
    model(X)
    hand.take_out(root)
    with torch.no_grad():
        model(X)
    assert model.seen == [True, False, False]
    assert not output["out"].is_inference()
    assert output["as given"] is X
    output["out"] += 1  # which an inference tensor would refuse


def test_a_program_that_uses_it_itself_keeps_it() -> None:
    found = hand.obstacle(rooted(mlp(), gradients=False, inference=True), True)
    assert found is not None
    assert found.users
    assert found.why == Reason.OWN_INFERENCE()


def test_not_where_gradients_are_computed() -> None:
    found = hand.obstacle(rooted(mlp()), True)
    assert found is not None
    assert found.why == Reason.TRAINS()
