"""Outputs require gradients as they did before settings were turned on."""

from typing import Any

import pytest
import torch
from torch import nn

from gputune.live.call import call_of
from gputune.live.nets.gradients import GradientsDiffer, Requirements, pattern
from gputune.live.suspects import Suspect

X = torch.ones(2, 4)


class Losing(nn.Module):
    """Its output requires no gradient as long as `loses` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.loses = nn.Linear(4, 1), True

    def forward(self, x: Any) -> Any:
        found = self.layer(x).sum()
        return found.detach() if self.loses else found


def turned_on(model: Losing, *, is_settings: bool) -> list[str]:
    """A setting in the model, which makes the output lose its gradient if `is_settings`; the names of what is off."""
    off: list[str] = []

    def lose(now: bool) -> None:
        model.loses = now or not is_settings

    def failed(error: Exception, why: str | None) -> None:
        off.append(type(error).__name__)

    call = call_of(model, "cpu")
    call.suspects.requirements.known = {(True,)}
    one = Suspect(name="amp_dtype", turn_off=lambda: lose(False), turn_on=lambda: lose(True), failed=failed)
    call.suspects.add(one)
    return off


def test_a_call_that_loses_the_gradient_is_made_again_without_the_setting() -> None:
    model = Losing()
    off = turned_on(model, is_settings=True)
    model(X).backward()
    assert off == ["GradientsDiffer"]
    assert model.layer.weight.grad is not None


def test_a_program_that_detaches_its_output_itself_keeps_the_setting() -> None:
    model = Losing()
    off = turned_on(model, is_settings=False)
    assert not model(X).requires_grad
    assert not model(X).requires_grad
    assert off == []


def test_as_many_boxes_as_an_image_shows_are_one_pattern() -> None:
    loss, box = torch.ones(1, requires_grad=True), torch.ones(4)
    assert pattern([loss, loss, box]) == pattern([loss, box, box, box]) == (True, False)


def test_what_is_no_tensor_is_not_looked_at() -> None:
    requirements = Requirements()
    requirements.known = {(True,)}
    requirements.look({"text": "none"})
    with pytest.raises(GradientsDiffer):
        requirements.look(torch.ones(1))
