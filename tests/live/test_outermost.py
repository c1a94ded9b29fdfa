"""The calls that a program makes itself: one wrap for all that look on."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from gputune.live.outermost import Outermost

X = torch.ones(2, 4)


class Seen:
    def __init__(self, gradients: bool = False) -> None:
        self.models: list[Any] = []
        self.calls = Outermost(lambda model, inputs, output: self.models.append(model), gradients=gradients)
        self.calls.start()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = nn.Module.__call__
    yield
    assert nn.Module.__call__ is before


def test_each_sees_the_calls_with_its_gradients() -> None:
    training, answering, model = Seen(gradients=True), Seen(), nn.Sequential(nn.Linear(4, 4))
    model(X)
    with torch.no_grad():
        model(X)
        model(X)
    assert (training.models, answering.models) == ([model], [model, model])
    training.calls.stop()
    answering.calls.stop()


def test_it_gets_inputs_and_output() -> None:
    seen: list[Any] = []
    calls, model = Outermost(lambda *found: seen.append(found), gradients=True), nn.Linear(4, 4)
    calls.start()
    output = model(X)
    calls.stop()
    [(module, (inputs, named), returned)] = seen
    assert module is model
    assert inputs[0] is X
    assert named == {}
    assert returned is output


def test_one_may_begin_and_end_while_another_is_told() -> None:
    """A program's iteration ends with a call, and what looks for its models begins then."""
    later = Seen()
    later.calls.stop()

    def told(*_: Any) -> None:
        if first.active:
            first.stop()
            later.calls.start()
        else:
            later.calls.stop()

    first, second = Outermost(told, gradients=False), Seen()
    first.start()
    model = nn.Linear(4, 4)
    with torch.no_grad():
        for _ in range(3):
            model(X)
    assert second.models == [model] * 3
    assert later.models == [model] * 2
    later.calls.stop()
    second.calls.stop()


def test_what_fails_in_one_that_looks_on_ends_that_and_not_the_program() -> None:
    failing = Outermost(lambda *_: 1 / 0, gradients=True)
    failing.start()
    nn.Linear(4, 4)(X)
    assert not failing.active


def test_what_is_called_within_another_call_is_not_seen_whatever_the_gradients() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        @torch.no_grad()
        def forward(self, x: Any) -> Any:
            return self.layer(x)

    seen = Seen()
    Frozen()(X)
    seen.calls.stop()
    assert seen.models == []


def test_where_it_is_to_be_found_the_first_thread_that_calls_is_looked_at() -> None:
    models: list[Any] = []
    calls, model = Outermost(lambda model, *_: models.append(model), gradients=True, found=True), nn.Linear(4, 4)
    calls.start()
    thread = threading.Thread(target=model, args=(X,))
    thread.start()
    thread.join()
    model(X)
    calls.stop()
    assert models == [model]


def test_a_call_that_raises_is_none_and_the_next_one_is_seen() -> None:
    seen, model = Seen(gradients=True), nn.Linear(4, 4)
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 3))
    model(X)
    seen.calls.stop()
    assert seen.models == [model]
