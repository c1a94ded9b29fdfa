"""The models that a program is seen to call in one step, what their calls show, and the features that it uses."""

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch
from hands_on import Squared
from torch import nn
from torch.utils import checkpoint

from gputune.live.call import call_of
from gputune.live.finding import ModelFinder, Seen


class Bearing(Squared):
    forward = staticmethod(torch.amp.custom_fwd(Squared.forward, device_type="cpu"))


class Calls(nn.Module):
    def __init__(self, function: Any = lambda x: x) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(4, 4), function

    def forward(self, x: Any, *, scale: Any = None) -> Any:
        return self.function(self.layer(x))


X = torch.ones(2, 4)
X_ASKED = torch.ones(2, 4, requires_grad=True)


@pytest.fixture
def finder() -> Iterator[ModelFinder]:
    finder = ModelFinder("cpu")
    finder.start()
    yield finder
    finder.stop()


def models(finder: ModelFinder) -> list[Any]:
    return [seen.model() for seen in finder.seen.values()]


def only(finder: ModelFinder) -> Seen:
    [seen] = finder.seen.values()
    return seen


def test_to_read_a_parametrized_weight_is_no_call_of_a_model(finder: ModelFinder) -> None:
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))
    assert layer.weight.requires_grad
    layer(X)
    assert models(finder) == [layer]


@pytest.mark.parametrize(
    ("layer", "size", "is_outsized"),
    [
        (nn.Conv2d(3, 4, 3, padding=1), 4, False),
        (nn.Conv2d(3, 4, 3, padding=1), 2, True),
        (nn.Conv2d(3, 4, 3, padding=2, dilation=2), 4, True),
        (nn.Conv2d(3, 4, 1, stride=3), 2, True),
        (nn.ConvTranspose2d(3, 4, 3), 2, False),
    ],
)
def test_kernels_larger_than_their_inputs_are_seen(
    finder: ModelFinder, layer: Any, size: int, is_outsized: bool
) -> None:
    nn.Sequential(layer, nn.ReLU())(torch.ones(2, 3, size, size))
    assert only(finder).outsized is is_outsized


def test_what_is_saved_for_the_backward_pass_is_not_read(finder: ModelFinder) -> None:
    read: list[Any] = []

    def unpack(one: Any) -> Any:
        read.append(one)
        return one

    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, unpack):
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())(torch.ones(2, 3, 4, 4))
    assert not only(finder).outsized
    assert only(finder).hooked
    assert read == []


def test_a_model_that_could_not_be_looked_at_as_a_whole_is_not_found(
    finder: ModelFinder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Calls(), Calls()
    with monkeypatch.context() as patched:
        patched.setattr("gputune.live.finding.opaque", lambda output: 1 / 0)
        first(X)
    second(X)
    assert models(finder) == [second]


def test_a_model_in_the_place_of_one_that_is_gone_is_looked_at_as_a_whole(finder: ModelFinder) -> None:
    for _ in range(20):
        Calls()(X)
        drawing = Calls(lambda x: x * random.random())
        drawing(X)
        assert finder.seen[id(drawing)].changes_numbers
        del drawing


@pytest.mark.parametrize(("fed", "is_seen"), [(torch.contiguous_format, True), (torch.channels_last, False)])
def test_outputs_in_channels_last_are_seen_if_no_input_is(finder: ModelFinder, fed: Any, is_seen: bool) -> None:
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    model(torch.ones(2, 3, 8, 8).to(memory_format=fed))
    assert only(finder).channels_last is is_seen


class TestBackward:
    @pytest.mark.parametrize(
        ("backward", "twice"),
        [
            (lambda out: out.sum().backward(), False),
            (lambda out: out.sum().backward(retain_graph=True), False),
            (lambda out: torch.autograd.grad(out.sum(), X_ASKED), False),
            (lambda out: torch.autograd.grad(out.sum(), X_ASKED, create_graph=True), True),
            (lambda out: torch.autograd.backward(out.sum(), None, True, True), True),
        ],
    )
    def test_gradients_of_gradients_are_seen(self, finder: ModelFinder, backward: Any, twice: bool) -> None:
        backward(Calls(torch.square)(X_ASKED))
        assert ("double backward" in finder.features) is twice

    def test_gradients_of_gradients_within_a_call_are_seen(self, finder: ModelFinder) -> None:
        Calls(lambda x: torch.autograd.grad(x.square().sum(), x, create_graph=True)[0])(X_ASKED).sum().backward()
        assert "double backward" in finder.features

    @pytest.mark.parametrize(
        ("use", "asked"),
        [
            (lambda out, features: features.retain_grad(), True),
            (lambda out, features: features.register_hook(lambda gradient: gradient * 2), True),
            (lambda out, features: torch.autograd.grad(out.sum(), features, retain_graph=True), True),
            (lambda out, features: out.backward(torch.ones_like(out), True, inputs=[features]), True),
            (lambda out, features: torch.autograd.grad(out.sum(), X_ASKED, retain_graph=True), False),
            (lambda out, features: (out.div_(2), features.sum().backward(retain_graph=True)), False),
            (lambda out, features: (out.grad_fn, features.detach().requires_grad_().retain_grad()), False),
        ],
    )
    @pytest.mark.parametrize("together", [True, False])
    def test_gradients_of_one_of_several_outputs_are_seen(
        self, finder: ModelFinder, use: Any, asked: bool, together: bool
    ) -> None:
        """Another one may be computed from it, and not from its copy. What a single output gives is used as it is."""
        model, head = Calls(lambda x: (x.sin(), x)), Calls()
        out, features = model(X_ASKED) if together else (None, head(X_ASKED))
        out = out if together else features.sin()
        use(out, features)
        out.sum().backward()
        assert ("gradients of outputs" in finder.features) is (asked and together)

    @pytest.mark.parametrize(
        ("use", "one_by_one"),
        [
            (lambda one, other: (one + other).sum().backward(), False),
            (lambda one, other: one.sum().backward(), False),
            (lambda one, other: (one.sum().backward(retain_graph=True), one.sum().backward()), False),
            (lambda one, other: (one.sum().backward(retain_graph=True), other.sum().backward()), True),
        ],
    )
    def test_backward_passes_through_outputs_one_by_one_are_seen(
        self, finder: ModelFinder, use: Any, one_by_one: bool
    ) -> None:
        model = Calls(lambda x: (x.sin(), x.cos()))
        for _ in range(2):
            use(*model(X_ASKED))
        assert ("backward by parts" in finder.features) is one_by_one

    @pytest.mark.parametrize("use", [torch.Tensor.retain_grad, lambda one: one.register_hook(torch.neg), None])
    def test_so_are_those_of_what_a_call_leaves_in_the_model(self, finder: ModelFinder, use: Any) -> None:
        class Keeping(Calls):
            def forward(self, x: Any) -> Any:
                self.kept = {"features": self.layer(x)}
                self.last = self.kept["features"]
                return self.kept["features"].sin()

        model = Keeping()
        out = model(X)
        if use:
            use(model.kept["features"])
        out.sum().backward()
        finder.stop()
        assert ("gradients of outputs" in finder.features) is bool(use)
        assert len(model.kept["features"]._backward_hooks) == bool(use and model.kept["features"].grad is None)

    def test_a_hook_that_no_gradient_has_reached_yet_is_seen(self, finder: ModelFinder) -> None:
        out, features = Calls(lambda x: (x.sin(), x))(X_ASKED)
        features.register_hook(lambda gradient: gradient * 2)
        out.sum().backward()
        finder.stop()
        assert "gradients of outputs" in finder.features

    def test_afterwards_no_hook_is_left(self, finder: ModelFinder) -> None:
        model = Calls(lambda x: (x, model.layer.weight))
        out, weight = model(X)
        assert (len(out._backward_hooks), weight._backward_hooks) == (1, None)
        finder.stop()
        assert not out._backward_hooks


class TestFound:
    def test_the_outermost_module_alone(self, finder: ModelFinder) -> None:
        model = nn.Sequential(Calls(), nn.Sequential(Calls()))
        model(X)
        model(X)
        assert models(finder) == [model]

    def test_each_of_several_in_the_order_of_their_first_calls(self, finder: ModelFinder) -> None:
        encoder, decoder = Calls(), Calls()
        decoder(encoder(X))
        encoder(X)
        assert models(finder) == [encoder, decoder]

    @pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
    def test_not_without_gradients(self, finder: ModelFinder, context: Any) -> None:
        with context():
            Calls()(X)
        frozen = Calls().requires_grad_(False)
        frozen(X)
        assert models(finder) == []

    def test_not_what_has_no_parameters(self, finder: ModelFinder) -> None:
        loss = nn.MSELoss()
        loss(X.clone().requires_grad_(), X)
        assert models(finder) == []

    @pytest.mark.slow
    def test_not_what_is_computed_again_during_backward(self, finder: ModelFinder) -> None:
        layer = Calls()
        checkpoint.checkpoint(layer, X, use_reentrant=False).sum().backward()
        assert models(finder) == [layer]
        finder.seen.clear()
        out = checkpoint.checkpoint(layer, X, use_reentrant=False)
        finder.seen.clear()
        out.sum().backward()
        assert models(finder) == []

    def test_not_what_is_gone(self, finder: ModelFinder) -> None:
        Calls()(X)
        assert models(finder) == [None]

    def test_not_what_another_thread_calls_at_the_same_time(self, finder: ModelFinder) -> None:
        """The call of this thread's model ends while the other's is still inside its own."""
        inside, ended = threading.Event(), threading.Event()

        def wait(x: Any) -> Any:
            inside.set()
            ended.wait(10)
            return x

        mine, other = Calls(lambda x: (thread.start(), inside.wait(10), x)[-1]), nn.Sequential(Calls(wait), Calls())
        thread = threading.Thread(target=lambda: other(X))
        mine(X)
        ended.set()
        thread.join()
        assert models(finder) == [mine]


class TestShown:
    def test_the_shapes_of_what_it_was_called_with_first(self, finder: ModelFinder) -> None:
        model = Calls()
        model(X, scale=[torch.ones(3), {"deep": torch.ones(())}])
        model(torch.ones(1, 4))
        assert only(finder).shapes == [(2, 4), (3,), ()]

    def test_a_function_that_may_not_bear_autocast(self, finder: ModelFinder) -> None:
        model = Calls(lambda x: Squared.apply(x).sum())
        model(X)
        assert only(finder).functions == only(finder).without_custom_fwd == ["Squared"]

    @pytest.mark.parametrize("function", [torch.relu, Bearing.apply])
    def test_not_torchs_own_and_not_one_that_says_how_it_behaves(self, finder: ModelFinder, function: Any) -> None:
        model = Calls(function)
        model(X)
        assert only(finder).without_custom_fwd == []

    def test_an_output_in_half_precision(self, finder: ModelFinder) -> None:
        for dtype, half in ((torch.bfloat16, True), (torch.float16, True), (torch.float64, False)):
            model = Calls(lambda x, dtype=dtype: x.to(dtype))
            model(X)
            assert only(finder).half is half
            finder.seen.clear()

    def test_autocast_around_the_call(self, finder: ModelFinder) -> None:
        model = Calls(lambda x: x.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(X)
        assert only(finder).autocast is torch.bfloat16

    @pytest.mark.parametrize("source", [random, random.Random(0), numpy.random])
    def test_a_forward_that_draws_from_pythons_random_or_numpys(self, finder: ModelFinder, source: Any) -> None:
        model = Calls(lambda x: x * source.random())
        model.source = source
        model(X)
        assert only(finder).changes_numbers

    @pytest.mark.parametrize("held", [[0.5], {"heat": 0.5}, deque([1, 2], maxlen=2), 0.5])
    def test_a_forward_that_changes_a_float_or_a_deque_that_it_holds(self, finder: ModelFinder, held: Any) -> None:
        def forward(x: Any) -> Any:
            if isinstance(held, deque):
                model.held.append(3)
            elif isinstance(held, float):
                model.held *= 0.9
            else:
                model.held[next(iter(held)) if isinstance(held, dict) else 0] *= 0.9
            return x

        model = Calls(forward)
        model.held = held
        model(X)
        assert only(finder).changes_numbers

    def test_a_forward_that_writes_to_a_weight(self, finder: ModelFinder) -> None:
        def write(x: Any) -> Any:
            with torch.no_grad():
                model.layer.weight.mul_(0.5)
                model.layer.weight.mul_(2)
            return x

        model = Calls(write)
        model(X)
        assert only(finder).changes_weights

    @pytest.mark.parametrize("steps", [False, True])
    def test_a_forward_that_trains_the_model(self, finder: ModelFinder, steps: bool) -> None:
        def trained(x: Any) -> Any:
            loss = nn.functional.conv2d(x[:, None, None], torch.ones(1, 1, 1, 1), stride=2).sum()
            loss.backward()
            if steps:
                optimizer.step()
                optimizer.zero_grad()
            return loss

        model = Calls(trained)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(X)
        assert only(finder).trains

    def test_a_training_step_after_a_call_is_none_in_it(self, finder: ModelFinder) -> None:
        model = Calls()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model(X).sum().backward()
            optimizer.step()
        assert not only(finder).trains

    def test_a_step_in_another_thread_meanwhile_is_none_of_its_forward(self, finder: ModelFinder) -> None:
        def forward(x: Any) -> Any:
            other = threading.Thread(target=torch.optim.SGD([nn.Parameter(torch.ones(1))]).step)
            other.start()
            other.join()
            return x

        Calls(forward)(X)
        assert not only(finder).trains

    def test_a_forward_that_does_neither(self, finder: ModelFinder) -> None:
        model = Calls(nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5)))
        model.steps, model.heat, model.sizes = 0, 0.5, []
        model.register_forward_hook(lambda *_: model.sizes.append(1))
        model(X)
        assert not only(finder).changes_numbers
        assert not only(finder).changes_weights


LAYER = nn.Linear(4, 4)


def autocast() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        LAYER(X_ASKED)


@torch.autocast("cpu", dtype=torch.bfloat16)
def decorated() -> None:
    LAYER(X_ASKED)


def elsewhere() -> None:
    with torch.autocast("cpu", enabled=False), torch.autocast("xpu", dtype=torch.float16):
        LAYER(X_ASKED)


def checkpointed(**options: Any) -> Callable[[], None]:
    return lambda: checkpoint.checkpoint(LAYER, X_ASKED, **options).sum().backward()


SELECTIVE = {
    "use_reentrant": False,
    "context_fn": lambda: checkpoint.create_selective_checkpoint_contexts([torch.ops.aten.mm.default]),
}


@pytest.mark.parametrize(
    ("use", "seen"),
    [
        (lambda: LAYER(X_ASKED), set()),
        (autocast, {"autocast"}),
        (decorated, {"autocast"}),
        (elsewhere, set()),
        pytest.param(checkpointed(use_reentrant=True), {"backward within backward"}, marks=pytest.mark.slow),
        pytest.param(checkpointed(use_reentrant=False), set(), marks=pytest.mark.slow),
        pytest.param(checkpointed(**SELECTIVE), {"selective checkpointing"}, marks=pytest.mark.slow),
    ],
)
def test_what_is_used_is_seen(finder: ModelFinder, use: Callable[[], None], seen: set[str]) -> None:
    use()
    assert finder.features == seen


@pytest.mark.slow
@pytest.mark.parametrize("reentrant", [False, True])
def test_the_autocast_that_was_put_in_is_not_the_programs(finder: ModelFinder, reentrant: bool) -> None:
    """Checkpointing enters it once more during backward."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return checkpoint.checkpoint(self.layer, x, use_reentrant=reentrant)

    model = Net()
    call_of(model, "cpu").dtype = torch.bfloat16
    model(X_ASKED).sum().backward()
    assert "autocast" not in finder.features


@pytest.mark.parametrize("name", ["_CachingTorchDispatchMode", "CheckpointFunction"])
def test_a_torch_without_the_class_of_a_feature_is_looked_at_all_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delattr(checkpoint, name)
    finder, model = ModelFinder("cpu"), nn.Linear(4, 4)
    finder.start()
    try:
        model(X_ASKED).sum().backward()
    finally:
        finder.stop()
    assert models(finder) == [model]
