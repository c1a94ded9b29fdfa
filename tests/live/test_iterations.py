"""The iterations of a program: its optimizers' steps, or its models' calls if it trains nothing."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch_child
from hands_on import unfollowed
from torch import nn

from gputune.live.iterations import LATER, SILENT, GradientCalls, Iterations

X = torch.ones(2, 4)


class Counting(Counter[str]):
    """How often it was told of what."""

    def __init__(self, trains: bool | None = None) -> None:
        told = [partial(self.update, [word]) for word in ("ended", "suspected", "mistaken")]
        self.iterations = Iterations(*told, trains=trains)
        self.iterations.start()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    with unfollowed():
        yield


@pytest.fixture
def has_optimizer() -> bool:
    return False


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch, has_optimizer: bool) -> Counting:
    monkeypatch.setattr("gputune.live.iterations.optimizer_made", lambda: has_optimizer)
    return Counting()


def called(*models: Any, times: int = 1) -> None:
    with torch.no_grad():
        for _ in range(times):
            for model in models:
                model(X)


def test_the_first_calls_pass_in_silence(counting: Counting) -> None:
    model = nn.Linear(4, 4)
    called(model, times=SILENT - 1)
    assert (counting["ended"], counting.iterations.are_calls) == (0, False)
    called(model, times=3)
    assert (counting["ended"], counting.iterations.are_calls) == (3, True)


def test_all_iterations_are_counted_those_before_it_is_told_too(counting: Counting) -> None:
    called(nn.Linear(4, 4), times=SILENT + 5)
    assert counting.iterations.made == SILENT + 5


def test_of_a_training_its_steps_alone_are_counted(counting: Counting) -> None:
    one = optimizer()
    called(nn.Linear(4, 4), times=3)
    for _ in range(4):
        one.step()
    assert counting.iterations.made == 4


def test_of_several_models_the_one_seen_last_ends_an_iteration(counting: Counting) -> None:
    encoder, decoder = nn.Linear(4, 4), nn.Linear(4, 4)
    called(encoder, decoder, times=SILENT // 2)
    before = counting["ended"]
    called(encoder, *[decoder] * 3, times=2)
    assert counting["ended"] - before == 6


def test_what_has_no_parameters_and_what_has_gradients_does_not_count(counting: Counting) -> None:
    called(nn.Softmax(dim=-1), times=2 * SILENT)
    for _ in range(2 * SILENT):
        nn.Linear(4, 4)(X)
    assert not counting.iterations.are_calls


@pytest.mark.parametrize("has_optimizer", [True])
def test_a_program_that_made_an_optimizer_is_suspected(counting: Counting) -> None:
    """It may look at how its model does before it trains, or evaluate only."""
    model = nn.Linear(4, 4)
    called(model, times=LATER - 1)
    assert (counting["ended"], counting["suspected"], counting.iterations.are_calls) == (0, 1, False)
    called(model)
    assert (counting["ended"], counting["suspected"], counting.iterations.are_calls) == (1, 1, True)


def test_of_a_program_that_is_known_to_train_nothing_nothing_is_suspected() -> None:
    torch.optim.SGD(nn.Linear(4, 4).parameters())
    counting = Counting(trains=False)
    called(nn.Linear(4, 4), times=SILENT)
    assert (counting["ended"], counting["suspected"]) == (1, 0)


@pytest.mark.parametrize("calls", [SILENT - 1, SILENT])
def test_a_step_after_calls_ends_them_and_is_mistaken_where_they_counted(counting: Counting, calls: int) -> None:
    model, one = nn.Linear(4, 4), optimizer()
    called(model, times=calls)
    before = counting["ended"]
    one.step()
    called(model, times=SILENT)
    assert counting["mistaken"] == (calls == SILENT)
    assert counting["ended"] - before == (calls < SILENT)


class TestCallsWithGradients:
    def test_are_told_at_the_tenth_and_whenever_they_have_doubled(self) -> None:
        told: list[int] = []
        GradientCalls(told.append).start()
        model = nn.Linear(4, 4)
        for _ in range(45):
            model(X)
        called(model, times=45)
        assert told == [SILENT, 2 * SILENT, 4 * SILENT]

    @pytest.mark.parametrize("ends", ["backward", "step"])
    def test_are_told_no_more_once_the_program_trains(self, ends: str) -> None:
        told: list[int] = []
        plain = nn.Module.__call__, torch.Tensor.backward
        GradientCalls(told.append).start()
        model, one = nn.Linear(4, 4), optimizer()
        if ends == "backward":
            model(X).sum().backward()
        else:
            one.step()
        for _ in range(45):
            model(X)
        assert told == []
        assert (nn.Module.__call__, torch.Tensor.backward) == plain


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SGD", "AdamW", "LBFGS", "Own"])
def test_torch_marks_that_an_optimizer_was_made(kind: str) -> None:
    """In a process of its own, in which no other test has made one."""
    before, after = torch_child.ask(
        f"""
import sys
sys.path[:0] = {[str(one) for one in _path()]}
from gputune.live.iterations import optimizer_made
class Own(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, dict(lr=lr))
    def step(self, closure=None):
        return None
answer = [optimizer_made()]
kind = Own if {kind!r} == "Own" else getattr(torch.optim, {kind!r})
kind(torch.nn.Linear(2, 2).parameters(), lr=0.1)
answer.append(optimizer_made())
"""
    )
    assert (before, after) == (False, True)


def _path() -> list[str]:
    import gputune

    return [str(gputune.__file__).rpartition("/gputune/")[0]]


def optimizer(kind: Any = torch.optim.SGD) -> Any:
    return kind(nn.Linear(2, 2).parameters(), lr=0.1)


def test_each_step_of_one_optimizer_is_an_iteration(counting: Counting) -> None:
    one = optimizer()
    for _ in range(3):
        one.step()
    assert counting["ended"] == 3


def test_two_that_take_turns_have_one_together(counting: Counting) -> None:
    critic, generator = optimizer(), optimizer()
    for _ in range(3):
        for one in (critic, critic, generator):
            one.step()
    # Before the generator was seen the critic's own steps were taken for iterations.
    assert counting["ended"] == 2 + 3


def test_a_step_within_a_step_is_none(counting: Counting) -> None:
    class Own(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    optimizer().step()
    own = optimizer(Own)
    before = counting["ended"]
    own.step()
    own.step()
    assert counting["ended"] == before + 2


def test_it_goes_on_when_an_optimizer_is_replaced(counting: Counting) -> None:
    optimizer().step()
    one = optimizer()
    one.step()
    one.step()
    assert counting["ended"] == 3
