"""The events in a program, and the patches that they need: one for all followers, and none without any."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hands_on import unfollowed
from torch import nn
from torch.nn.modules import module
from torch.optim import optimizer
from torch.utils import checkpoint

from gputune.live import observer
from gputune.live.observer import Follower

X = torch.ones(2, 4)


class Heard(Follower):
    def __init__(self, told: Any = lambda *_: None, *, gradients: bool = False, finds_thread: bool = False) -> None:
        self.told, self.gradients, self.finds_thread = told, gradients, finds_thread
        self.models: list[Any] = []
        observer.follow(self)

    def model_called(self, model: Any, inputs: Any, output: Any) -> None:
        self.models.append(model)
        self.told(model, inputs, output)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    with unfollowed():
        yield


def test_each_sees_the_calls_with_its_gradients() -> None:
    training, inference, model = Heard(gradients=True), Heard(), nn.Sequential(nn.Linear(4, 4))
    model(X)
    with torch.no_grad():
        model(X)
        model(X)
    assert (training.models, inference.models) == ([model], [model, model])


def test_it_gets_inputs_and_output() -> None:
    seen: list[Any] = []
    Heard(lambda *found: seen.append(found), gradients=True)
    model = nn.Linear(4, 4)
    output = model(X)
    [(module, (inputs, named), returned)] = seen
    assert module is model
    assert inputs[0] is X
    assert named == {}
    assert returned is output


def test_one_may_begin_and_end_while_another_is_told() -> None:
    """A program's iteration ends with a call, and what looks for its models begins then."""
    later = Heard(lambda *_: observer.leave(later))
    observer.leave(later)

    def told(*_: Any) -> None:
        observer.leave(first)
        observer.follow(later)

    first, second, model = Heard(told), Heard(), nn.Linear(4, 4)
    with torch.no_grad():
        for _ in range(3):
            model(X)
    assert (first.models, later.models, second.models) == ([model], [model], [model] * 3)


def test_what_fails_in_a_follower_ends_that_and_not_the_program() -> None:
    failing, model = Heard(lambda *_: 1 / 0, gradients=True), nn.Linear(4, 4)
    model(X)
    model(X)
    assert failing.models == [model]


def test_what_is_called_within_another_call_is_not_seen_whatever_the_gradients() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        @torch.no_grad()
        def forward(self, x: Any) -> Any:
            return self.layer(x)

    seen = Heard()
    Frozen()(X)
    assert seen.models == []


def test_where_it_is_to_be_found_the_first_thread_that_calls_is_looked_at() -> None:
    found, own, model = Heard(gradients=True, finds_thread=True), Heard(gradients=True), nn.Linear(4, 4)
    thread = threading.Thread(target=model, args=(X,))
    thread.start()
    thread.join()
    assert (found.models, own.models) == ([model], [])
    model(X)
    assert (found.models, own.models) == ([model], [model])


def test_a_call_that_raises_is_none_and_the_next_one_is_seen() -> None:
    seen, model = Heard(gradients=True), nn.Linear(4, 4)
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 3))
    model(X)
    assert seen.models == [model]


class All(Follower):
    """Hears of everything, and does nothing."""


for _event in observer.EVENTS:
    setattr(All, _event, lambda *_: None)

PLACES: list[tuple[Any, str]] = [
    (nn.Module, "__call__"), (torch.autocast, "__enter__"), (checkpoint._CachingTorchDispatchMode, "__init__"),
    (torch.Tensor, "backward"), (torch.autograd, "backward"),
    (torch.amp.GradScaler, "scale"),
]  # fmt: skip


def in_place() -> list[Any]:
    return [*(vars(holder)[name] for holder, name in PLACES), len(module._global_module_registration_hooks)]


def test_nothing_is_patched_before_it_is_needed_or_afterwards() -> None:
    before, one, other = in_place(), All(), All()
    observer.follow(Follower())
    assert in_place() == before
    observer.follow(one)
    patched = in_place()
    assert not any(was == now for was, now in zip(before, patched, strict=True))
    observer.follow(one)
    observer.follow(other)
    observer.leave(one)
    assert in_place() == patched
    observer.leave(other)
    observer.leave(other)
    assert in_place() == before


def test_hooks_on_steps_are_made_once_and_stay_so_that_a_follower_may_leave_within_a_step() -> None:
    class Leaving(Follower):
        def optimizer_stepped(self, optimizer: Any) -> None:
            observer.leave(self)

    handle = optimizer.register_optimizer_step_post_hook(lambda *_: None)  # the program's own
    weight, made = nn.Parameter(torch.ones(())), []
    for _ in range(2):
        observer.follow(Leaving())
        torch.optim.SGD([weight], lr=0.1).step()
        made.append(len(optimizer._global_optimizer_post_hooks))
    handle.remove()
    assert made[0] == made[1]


@pytest.mark.parametrize(("holder", "name"), PLACES)
def test_somebody_elses_patch_on_top_stays(holder: Any, name: str) -> None:
    original, follower = vars(holder)[name], All()
    observer.follow(follower)
    setattr(holder, name, print)
    observer.leave(follower)
    assert vars(holder)[name] is print
    setattr(holder, name, original)


def test_somebody_elses_wrap_of_calls_works_on() -> None:
    original, follower, calls = nn.Module.__call__, Heard(gradients=True), []
    ours = nn.Module.__call__

    def theirs(self: Any, *inputs: Any, **named: Any) -> Any:
        calls.append(self)
        return ours(self, *inputs, **named)

    nn.Module.__call__ = theirs
    model = nn.Sequential(nn.Linear(4, 4))
    model(X)
    observer.leave(follower)
    model(X)
    assert nn.Module.__call__ is theirs
    assert calls == [model, model[0]] * 2
    nn.Module.__call__ = original


class Does(nn.Module):
    def __init__(self, work: Any) -> None:
        super().__init__()
        self.work = work

    def forward(self, x: Any) -> Any:
        self.work()
        return x


def test_inside_a_model_the_wrap_of_calls_is_out_of_the_way_and_a_follower_may_leave() -> None:
    before, found, follower = nn.Module.__call__, [], Heard(gradients=True)
    patched = nn.Module.__call__
    Does(lambda: found.append(nn.Module.__call__))(X)
    assert (found, nn.Module.__call__) == ([before], patched)
    Does(lambda: observer.leave(follower))(X)
    assert nn.Module.__call__ is before
