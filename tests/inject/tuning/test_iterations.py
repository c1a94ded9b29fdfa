"""Iterations of a training loop, told from outside by the steps of its optimizers."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from trials.guard_cases import untouched

from gputune.inject.tuning.iterations import Iterations


@pytest.fixture
def ended() -> Iterator[list[int]]:
    """Gets an entry after each iteration."""
    times: list[int] = []
    with untouched():
        Iterations(lambda: times.append(len(times))).start()
        yield times


def optimizer(kind: Any = torch.optim.SGD) -> Any:
    return kind(nn.Linear(2, 2).parameters(), lr=0.1)


def test_each_step_of_one_optimizer_is_an_iteration(ended: list[int]) -> None:
    one = optimizer()
    for _ in range(3):
        one.step()
    assert len(ended) == 3


def test_two_that_take_turns_have_one_together(ended: list[int]) -> None:
    critic, generator = optimizer(), optimizer()
    for _ in range(3):
        for one in (critic, critic, generator):
            one.step()
    # Before the generator was seen the critic's own steps were taken for iterations.
    assert len(ended) == 2 + 3


def test_a_step_within_a_step_is_none(ended: list[int]) -> None:
    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    optimizer().step()
    own = optimizer(Own)
    before = len(ended)
    own.step()
    own.step()
    assert len(ended) == before + 2


def test_it_goes_on_when_an_optimizer_is_replaced(ended: list[int]) -> None:
    optimizer().step()
    one = optimizer()
    one.step()
    one.step()
    assert len(ended) == 3
