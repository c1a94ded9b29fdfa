"""What a call has changed in what a model holds: floats, deques, and tensors that mixed precision would put there."""

import math
import time
from collections import deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from gputune.knobs._outputs import tensors
from gputune.live.call import call_of
from gputune.live.held import Held


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
    held = Held(wrap(model))
    change(model)
    assert held.has_other_numbers(wrap(model))


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
    held = Held(model)
    change(model)
    assert not held.has_other_numbers(model)


@pytest.mark.slow
@pytest.mark.timed
def test_a_model_that_holds_much_is_looked_through_quickly() -> None:
    model = nn.Sequential(*(Model() for _ in range(300)))
    model.held = [[[float(n)] * 500 for n in range(500)], list(range(10**7)), [[] for _ in range(10**6)]]
    began = time.perf_counter()
    assert not Held(model).has_other_numbers(model)
    assert time.perf_counter() - began < 1


HALF, FULL = torch.bfloat16, torch.float32
Pair = namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Record:
    value: Any

    def __copy__(self) -> Any:
        raise TypeError


class Keeps(nn.Module):
    last: Any = None

    def __init__(self, keep: Callable[[Any, Any], object]) -> None:
        super().__init__()
        self.layer, self.keep, self.own = nn.Linear(2, 2), keep, torch.zeros(2, dtype=HALF)
        self.register_buffer("center", torch.zeros(2))
        self.list, self.table, self.object = [torch.zeros(2)], {"all": [], "last": None}, SimpleNamespace(x=None)
        self.recent, self.bank = deque([torch.zeros(2)], maxlen=1), dict.fromkeys(range(5000))

    def forward(self, x: Any) -> Any:
        out = self.layer(x)
        self.keep(self, out)
        return out


REPLACED: dict[str, tuple[Callable[[Any, Any], object], Callable[[Any], Any]]] = {
    "an attribute": (lambda own, out: setattr(own, "last", out), lambda own: own.last),
    "a state in a tuple": (lambda own, out: setattr(own, "state", (out, [out])), lambda own: own.state),
    "a named tuple": (lambda own, out: setattr(own, "state", Pair(out, None)), lambda own: own.state),
    "a list of its own": (lambda own, out: setattr(own, "list", [out, {"x": out}]), lambda own: own.list),
    "a distribution": (lambda own, out: setattr(own, "spread", Independent(Normal(out, 1), 1)), lambda own: own.spread),
    "a buffer": (lambda own, out: setattr(own, "center", out.detach().mean(0)), lambda own: own.center),
    "an attribute of a part": (lambda own, out: setattr(own.layer, "scores", out), lambda own: own.layer.scores),
}
KEPT: dict[str, tuple[Callable[[Any, Any], object], str]] = {
    "a list that grows": (lambda own, out: own.list.append(out), "list"),
    "a deque": (lambda own, out: own.recent.append(out), "recent"),
    "a dictionary": (lambda own, out: own.table.update(last=out), "table"),
    "a list in a dictionary": (lambda own, out: own.table["all"].append(out), "table"),
    "a large table": (lambda own, out: own.bank.update({3000: out}), "bank"),
    "an object": (lambda own, out: setattr(own.object, "x", out), "object"),
    "a new object": (lambda own, out: setattr(own, "object", SimpleNamespace(x=out)), "object"),
    "an object that makes no copy": (lambda own, out: setattr(own, "object", Record(out)), "object"),
    "a new list around one that grows": (
        lambda own, out: setattr(own, "new", [own.list]) or own.list.append(out), "list",
    ),
    "the class": (lambda own, out: setattr(Keeps, "last", out), "last"),
}  # fmt: skip


def called(model: Any) -> tuple[list[Any], str | None]:
    for _ in range(2):
        held = Held(model)
        model(torch.ones(3, 2))
    return held.computed(model)


@pytest.mark.parametrize(("keep", "kept"), REPLACED.values(), ids=REPLACED)
def test_what_a_call_leaves_in_an_attribute_is_in_fp32_in_mixed_precision(keep: Any, kept: Any) -> None:
    model = Keeps(keep)
    call = call_of(model, "cpu")
    call.computed, keeps = called(model)
    assert not keeps
    call.dtype = HALF
    for _ in range(2):
        out = model(torch.ones(3, 2))
        found = list(tensors(kept(model)))
        assert {one.dtype for one in found} == {FULL}
        assert any(one is out for one in found) is not ("center" in keep.__code__.co_consts)
    assert model.own.dtype == HALF  # the program's


@pytest.mark.parametrize(("keep", "name"), KEPT.values(), ids=KEPT)
def test_tensors_that_a_call_leaves_where_they_cannot_be_replaced(
    keep: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Keeps, "last", None)
    assert called(Keeps(keep)) == ([], name)


@pytest.mark.parametrize(
    "keep",
    [
        lambda own, out: None,
        lambda own, out: own.center.copy_(out[0].detach()),
        lambda own, out: own.list.append(out.argmax()),
        lambda own, out: own.list.pop() if own.list else None,
        lambda own, out: own.table.update(last=own.center, all=3),
    ],
)
def test_calls_that_leave_no_tensor_of_their_own(keep: Any) -> None:
    assert called(Keeps(keep)) == ([], None)


def test_an_action_and_the_transform_that_keeps_it_for_its_log_probability_stay_one() -> None:
    squash = TanhTransform(cache_size=1)
    model = Keeps(lambda own, out: setattr(own, "spread", TransformedDistribution(Normal(out, 5.0), [squash])))
    model.register_forward_hook(lambda own, inputs, out: own.spread.rsample())
    call = call_of(model, "cpu")
    call.computed, _ = called(model)
    call.dtype = HALF
    action = model(torch.ones(100, 2))
    assert (action.abs() == 1).any()
    assert model.spread.log_prob(action).isfinite().all()
