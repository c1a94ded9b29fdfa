"""Whether a model's floats and deques have changed, wherever it holds them."""

import math
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from gputune.live.numbers import Numbers


class Slots:
    __slots__ = ("heat", "nothing")


class Model(nn.Linear):
    heat = 0.5

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.slots, self.itself = Slots(), [self]
        self.slots.heat = 0.5
        self.held = {"lists": [[0.5]], "object": SimpleNamespace(inside={"heat": 0.5}, last=deque([1], maxlen=1))}
        self.steps, self.sizes, self.module = 0, [1], math
        self.itself.append(self.itself)


@pytest.fixture(autouse=True)
def heat_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "heat", 0.5)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "heat", model.heat * 0.9),
        lambda model: setattr(Model, "heat", Model.heat * 0.9),
        lambda model: setattr(model.slots, "heat", model.slots.heat * 0.9),
        lambda model: model.held["lists"][0].append(model.held["lists"][0][-1] * 0.9),
        lambda model: model.held["object"].inside.update(heat=model.held["object"].inside["heat"] * 0.9),
        lambda model: model.held["object"].last.append(2),
    ],
)
@pytest.mark.parametrize("wrap", [lambda model: model, nn.Sequential])
def test_a_float_or_a_deque_that_changes(change: Any, wrap: Any) -> None:
    model = Model()
    numbers = Numbers(wrap(model))
    change(model)
    assert numbers.have_changed(wrap(model))


@pytest.mark.parametrize(
    "change",
    [
        lambda model: None,
        lambda model: setattr(model, "steps", model.steps + 1),
        lambda model: model.sizes.append(2),
        lambda model: model.held["lists"].pop(),
        lambda model: setattr(model, "kept", model.weight * 0.5),
    ],
)
def test_other_things_that_change(change: Any) -> None:
    model = Model()
    numbers = Numbers(model)
    change(model)
    assert not numbers.have_changed(model)


@pytest.mark.slow
@pytest.mark.timed
def test_a_model_that_holds_much_is_looked_through_quickly() -> None:
    model = nn.Sequential(*(Model() for _ in range(300)))
    model.held = [[[float(n)] * 500 for n in range(500)], list(range(10**7)), [[] for _ in range(10**6)]]
    began = time.perf_counter()
    assert not Numbers(model).have_changed(model)
    assert time.perf_counter() - began < 1
