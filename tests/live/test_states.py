"""What a call of a model changes is put back, or nothing is and the reason says what cannot be."""

import copy
import gc
import random
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch
from hands_on import LateError, alarm, ring
from torch import nn

from gputune.live.containers import LARGE
from gputune.live.states import WHOLE, States

X = torch.ones(2)


class Meter:
    """An object of the program's own."""

    def __init__(self) -> None:
        self.count = 0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.register_buffer("times", torch.zeros(1))
        self.count, self.meter, self.hidden = 0, Meter(), torch.zeros(1)
        self.dictionary, self.items, self.seen = {"one": 1}, [1], {1}
        self.counter, self.ordered, self.last, self.more = Counter("a"), OrderedDict(a=1), deque([1]), defaultdict(list)
        self.generator, self.own, self.newer = torch.Generator(), random.Random(0), numpy.random.default_rng(0)


def changes(model: Any) -> None:
    model.count += 1
    model.inner.count = 1
    model.meter.count += 1
    model.times += 1
    model.hidden.add_(1)
    model.dictionary["two"] = 2
    model.dictionary["one"] = 3
    model.items.append(2)
    model.seen.add(2)
    model.counter["a"] += 1
    model.ordered.popitem()
    model.last.appendleft(0)
    model.more["a"] = []


def drawn(model: Any) -> list[float]:
    own = [torch.rand(1, generator=model.generator).item(), model.own.random(), model.newer.random()]
    return [*own, torch.rand(1).item(), random.random(), numpy.random.rand()]


def shown(model: Any) -> list[Any]:
    attributes = [
        model.count,
        hasattr(model.inner, "count"),
        model.meter.count,
        model.times.item(),
        model.hidden.item(),
    ]
    return [
        *attributes,
        model.dictionary,
        model.items,
        model.seen,
        model.counter,
        model.ordered,
        model.last,
        model.more,
    ]


def states_of(model: Any) -> States:
    return States(weakref.ref(model), "cpu")


def settled(model: Any, call: Callable[[Any], Any] = id) -> States:
    """After the calls that everything was kept of."""
    states = states_of(model)
    for _ in range(WHOLE):
        before = states.before_call((X,))
        call(model)
        states.after_call(before)
    return states


def test_in_the_first_calls_everything_is_put_back() -> None:
    model = Net()
    states, expected = states_of(model), shown(Net())
    before = states.before_call((X,))
    changes(model)
    numbers = drawn(model)
    assert states.put_back(before) is None
    assert (shown(model), drawn(model)) == (expected, numbers)


def test_later_all_is_put_back_that_moved_then_but_for_buffers() -> None:
    model = Net()

    def call(one: Any) -> None:
        one.count += 1
        one.items.append(1)
        one.meter.count += 1
        drawn(one)

    states = settled(model, call)
    kept, before = (model.count, list(model.items), model.meter.count), states.before_call((X,))
    call(model)
    state = model.own.getstate()
    assert states.put_back(before) is None
    assert (model.count, model.items, model.meter.count) == kept
    drawn(model)
    assert model.own.getstate() == state


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda model, x: model.times.add_(1), "its buffers, gradients or inputs have changed"),
        (lambda model, x: model.hidden.add_(1), "its buffers, gradients or inputs have changed"),
        (lambda model, x: x.add_(1), "its buffers, gradients or inputs have changed"),
        (lambda model, x: model.items.append(1), "its attributes have changed"),
        (lambda model, x: setattr(model.inner, "count", 1), "its attributes have changed"),
        (lambda model, x: setattr(model, "count", 1), "its attributes have changed"),
    ],
)
def test_what_moves_later_for_the_first_time_is_noticed(change: Any, why: str) -> None:
    model, x = Net(), torch.ones(2)
    states = settled(model)
    before = states.before_call((x,))
    change(model, x)
    assert states.put_back(before) == why


def test_inputs_are_put_back() -> None:
    model, batch, x = Net(), {"x": X, "labels": X}, torch.ones(2)
    states = states_of(model)
    before = states.before_call((batch, x))
    batch.pop("labels")
    x.mul_(2)
    assert states.put_back(before) is None
    assert (list(batch), x.tolist()) == (["x", "labels"], [1.0, 1.0])


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.losses, self.counts = {"all": [1.0]}, {"of": {"all": 1}}
        self.load, self.loads, self.meter = numpy.zeros(2), [numpy.zeros(2)], Meter()
        self.meter.all = [1]


def changes_deep(model: Any, batch: Any, targets: Any) -> None:
    model.losses["all"].append(2.0)
    model.counts["of"]["all"] += 1
    model.load += 1
    model.loads[0][1] = 2
    model.meter.all.append(2)
    batch.x = batch.x * 2
    batch.parts["x"] = 2
    targets[0]["boxes"] = X


def test_in_the_first_calls_so_is_what_lies_deep_in_attributes_and_inputs() -> None:
    model, batch, targets = Deep(), SimpleNamespace(x=X, parts={"x": 1}), [{"labels": X}]
    states = states_of(model)
    before = states.before_call((batch, targets))
    changes_deep(model, batch, targets)
    assert states.put_back(before) is None
    assert (model.losses, model.counts, model.meter.all) == ({"all": [1.0]}, {"of": {"all": 1}}, [1])
    assert (model.load.tolist(), model.loads[0].tolist()) == ([0, 0], [0, 0])
    assert batch.x is X
    assert (batch.parts, list(targets[0])) == ({"x": 1}, ["labels"])


def test_a_call_that_changes_gradients_is_not_made_again() -> None:
    model = Net()
    states = states_of(model)
    before = states.before_call((X,))
    model.inner(X).sum().backward()
    assert states.put_back(before) == "its buffers, gradients or inputs have changed"
    before = states.before_call((X,))
    model.inner(X).sum().backward()
    assert states.put_back(before) == "its buffers, gradients or inputs have changed"


def test_later_a_model_that_changed_what_lies_deep_is_not_called_again() -> None:
    model, batch, targets = Deep(), SimpleNamespace(x=X, parts={}), [{}]
    states = states_of(model)
    for _ in range(WHOLE):
        before = states.before_call((batch, targets))
        changes_deep(model, batch, targets)
        states.after_call(before)
    before = states.before_call((batch, targets))
    assert states.put_back(before) == "its calls change what lies deep in its attributes or inputs"


def test_what_did_not_change_is_not_written_to() -> None:
    model = Net()
    states, version = states_of(model), model.times._version
    assert states.put_back(states.before_call((X,))) is None
    assert model.times._version == version  # a backward pass may need it unchanged


@pytest.mark.parametrize("given", [iter([X]), [iter([X])], (one for one in [X])])
def test_an_iterator_among_the_inputs_is_consumed_for_good(given: Any) -> None:
    model = Net()
    states = states_of(model)
    assert states.put_back(states.before_call((given,))) == "an iterator is among its inputs"


@pytest.mark.parametrize("name", ["iterator", "items"])
def test_so_is_one_that_the_model_holds(name: str) -> None:
    model = Net()
    setattr(model, name, iter([X]) if name == "iterator" else [iter([X])])
    states = states_of(model)
    assert states.put_back(states.before_call((X,))) == "it holds an iterator"


def test_a_model_that_changes_its_weights_is_not_called_again() -> None:
    model = Net()

    def call(one: Any) -> None:
        with torch.no_grad():
            one.inner.weight.mul_(0.9)

    states = settled(model, call)
    assert states.put_back(states.before_call((X,))) == "its calls change its weights"


class Codes(Net):
    """It has a buffer, a parameter without gradients and a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.code = nn.Parameter(torch.ones(3), requires_grad=False)
        self.register_buffer("empty", torch.full((2,), float("nan")))


def copies(model: Any) -> None:
    with torch.no_grad():
        model.code.copy_(model.code + 1)


WRITES_UNSEEN = [
    lambda model: model.times.data.add_(1),
    lambda model: setattr(model.times, "data", model.times + 1),
    lambda model: setattr(model.times, "data", torch.ones(4)),
]
WRITES_TO_PARAMETERS = [
    copies,
    lambda model: model.code.data.mul_(2),
    lambda model: setattr(model.code, "data", model.code + 1),
    lambda model: model.inner.weight.data.mul_(0.9),
]


@pytest.mark.parametrize("write", [*WRITES_UNSEEN, *WRITES_TO_PARAMETERS])
@pytest.mark.parametrize("calls", [0, 1])
def test_in_the_first_calls_writes_through_data_and_to_parameters_are_put_back(write: Any, calls: int) -> None:
    model = Codes()
    states = states_of(model)
    for _ in range(calls):
        before = states.before_call((X,))
        write(model)
        states.after_call(before)
    kept = copy.deepcopy(model.state_dict())
    before = states.before_call((X,))
    write(model)
    assert states.put_back(before) is None
    assert all(torch.equal(one.nan_to_num(), kept[name].nan_to_num()) for name, one in model.state_dict().items())


@pytest.mark.parametrize(
    ("writes", "why"),
    [(WRITES_UNSEEN, "its calls write to tensors through .data"), (WRITES_TO_PARAMETERS, "its calls change its weig")],
)
def test_later_calls_of_a_model_that_did_so_are_not_made_again(writes: Any, why: str) -> None:
    for write in writes:
        model = Codes()
        states = settled(model, write)
        assert (states.put_back(states.before_call((X,))) or "").startswith(why)
        assert states.changes_weights is (writes is WRITES_TO_PARAMETERS)


def test_calls_of_a_model_with_batch_normalization_are_made_again_until_it_has_run() -> None:
    model: Any = Net()
    model.norm = nn.BatchNorm1d(2)
    states = settled(model, lambda model: model.norm(torch.randn(4, 2)))
    assert states.put_back(states.before_call((X,))) is None
    before = states.before_call((X,))
    model.norm(torch.randn(4, 2))
    assert states.put_back(before) == "its buffers, gradients or inputs have changed"


def test_a_model_that_is_switched_to_evaluation_is_called_again() -> None:
    model = Net()
    states = settled(model)
    model.eval()
    assert states.put_back(states.before_call((X,))) is None


def test_parameters_that_take_much_memory_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputune.live.states.MOST_BYTES", 8)
    model = Codes()
    states = states_of(model)
    before = states.before_call((X,))
    copies(model)
    assert states.put_back(before) == "its buffers, gradients or inputs have changed"


def test_values_that_are_not_numbers_do_not_count_as_written_to() -> None:
    model = Codes()
    states = settled(model)
    assert states.put_back(states.before_call((X,))) is None


def test_of_a_large_container_the_length_is_kept() -> None:
    model = Net()
    model.items = [1] * (LARGE + 1)
    states = states_of(model)
    before = states.before_call((X,))
    model.items.append(1)
    assert states.put_back(before) == "its buffers, gradients or inputs have changed"


def test_weights_that_an_optimizer_steps_and_modes_that_come_back_do_not_count_as_changed() -> None:
    model = Net()
    states = settled(model)
    with torch.no_grad():
        model.inner.weight.mul_(0.9)
    model.eval().train()
    assert states.put_back(states.before_call((X,))) is None


def test_what_a_signal_handler_raises_meanwhile_is_not_swallowed() -> None:
    class Odd(Net):
        def buffers(self, recurse: bool = True) -> Any:
            ring()
            return super().buffers(recurse)

    model = Odd()
    states = states_of(model)
    with alarm(), pytest.raises(LateError):
        states.before_call((X,))


def test_what_is_computed_is_not_kept_with_its_graph() -> None:
    model: Any = Net()
    states = states_of(model)
    model.hidden = model.inner(X)
    gone = weakref.ref(model.hidden)
    states.after_call(states.before_call(()))
    model.hidden = None
    assert gone() is None


def test_a_model_is_freed_at_once_and_what_it_made_is_not_kept() -> None:
    gc.disable()
    try:
        model: Any = Net()

        def call(one: Any) -> None:
            one.features = one.inner(X)

        model.states = settled(model, call)
        features, gone = weakref.ref(model.features), weakref.ref(model.inner.weight)
        model.features = None
        assert features() is None
        del model
        assert gone() is None
    finally:
        gc.enable()
