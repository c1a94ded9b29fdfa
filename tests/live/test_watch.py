"""Which models a program is seen to call in one step, and what their calls show."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from gputune.live.outermost import _wrap
from gputune.live.watch import Seen, Watch


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2 * ctx.saved_tensors[0]


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
def watch() -> Iterator[Watch]:
    before = nn.Module.__call__
    watch = Watch("cpu")
    watch.start()
    yield watch
    watch.stop()
    nn.Module.__call__ = before


def models(watch: Watch) -> list[Any]:
    return [seen.model() for seen in watch.seen.values()]


def only(watch: Watch) -> Seen:
    [seen] = watch.seen.values()
    return seen


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
    def test_gradients_of_gradients_are_seen(self, watch: Watch, backward: Any, twice: bool) -> None:
        backward(Calls(torch.square)(X_ASKED))
        assert ("double backward" in watch.features) is twice

    def test_afterwards_no_hook_is_left(self, watch: Watch) -> None:
        model = Calls(lambda x: (x, model.layer.weight))
        out, weight = model(X)
        assert (len(out._backward_hooks), weight._backward_hooks) == (1, None)
        watch.stop()
        assert not out._backward_hooks


class TestFound:
    def test_the_outermost_module_alone(self, watch: Watch) -> None:
        model = nn.Sequential(Calls(), nn.Sequential(Calls()))
        model(X)
        model(X)
        assert models(watch) == [model]

    def test_each_of_several_in_the_order_of_their_first_calls(self, watch: Watch) -> None:
        encoder, decoder = Calls(), Calls()
        decoder(encoder(X))
        encoder(X)
        assert models(watch) == [encoder, decoder]

    @pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
    def test_not_without_gradients(self, watch: Watch, context: Any) -> None:
        with context():
            Calls()(X)
        frozen = Calls().requires_grad_(False)
        frozen(X)
        assert models(watch) == []

    def test_not_what_has_no_parameters(self, watch: Watch) -> None:
        loss = nn.MSELoss()
        loss(X.clone().requires_grad_(), X)
        assert models(watch) == []

    @pytest.mark.slow
    def test_not_what_is_computed_again_during_backward(self, watch: Watch) -> None:
        from torch.utils.checkpoint import checkpoint

        layer = Calls()
        checkpoint(layer, X, use_reentrant=False).sum().backward()
        assert models(watch) == [layer]
        watch.seen.clear()
        out = checkpoint(layer, X, use_reentrant=False)
        watch.seen.clear()
        out.sum().backward()
        assert models(watch) == []

    def test_not_what_is_gone(self, watch: Watch) -> None:
        Calls()(X)
        assert models(watch) == [None]

    def test_not_what_another_thread_calls_at_the_same_time(self, watch: Watch) -> None:
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
        assert models(watch) == [mine]


class TestShown:
    def test_the_shapes_of_what_it_was_called_with_first(self, watch: Watch) -> None:
        model = Calls()
        model(X, scale=[torch.ones(3), {"deep": torch.ones(())}])
        model(torch.ones(1, 4))
        assert only(watch).shapes == [(2, 4), (3,), ()]

    def test_a_function_that_may_not_bear_autocast(self, watch: Watch) -> None:
        model = Calls(lambda x: Squared.apply(x).sum())
        model(X)
        assert only(watch).functions == ["Squared"]

    @pytest.mark.parametrize("function", [torch.relu, Bearing.apply])
    def test_not_torchs_own_and_not_one_that_says_how_it_behaves(self, watch: Watch, function: Any) -> None:
        model = Calls(function)
        model(X)
        assert only(watch).functions == []

    def test_an_output_in_half_precision(self, watch: Watch) -> None:
        for dtype, half in ((torch.bfloat16, True), (torch.float16, True), (torch.float64, False)):
            model = Calls(lambda x, dtype=dtype: x.to(dtype))
            model(X)
            assert only(watch).half is half
            watch.seen.clear()

    def test_autocast_around_the_call(self, watch: Watch) -> None:
        model = Calls(lambda x: x.float())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(X)
        assert only(watch).autocast is torch.bfloat16


class TestPatch:
    """`torch.nn.Module.__call__` is what it was as soon as nobody needs it to be otherwise."""

    def test_it_is_gone_after_stop(self) -> None:
        before, watch = nn.Module.__call__, Watch("cpu")
        watch.start()
        watch.start()
        assert nn.Module.__call__ is not before
        watch.stop()
        watch.stop()
        assert nn.Module.__call__ is before

    def test_it_is_out_of_the_way_inside_a_model(self, watch: Watch) -> None:
        found: list[Any] = []
        patched = nn.Module.__call__
        model = Calls(lambda x: (found.append(nn.Module.__call__), x)[1])
        model(X)
        assert found[0] is not patched
        assert nn.Module.__call__ is patched

    def test_somebody_elses_on_top_stays_and_works(self, watch: Watch) -> None:
        ours, calls = nn.Module.__call__, []

        def theirs(self: Any, *inputs: Any, **named: Any) -> Any:
            calls.append(self)
            return ours(self, *inputs, **named)

        nn.Module.__call__ = theirs
        model = Calls()
        model(X)
        watch.stop()
        model(X)
        assert nn.Module.__call__ is theirs
        assert calls == [model, model.layer] * 2

    def test_a_stop_inside_a_call_holds(self, watch: Watch) -> None:
        before = _wrap._original
        Calls(lambda x: (watch.stop(), x)[1])(X)
        assert nn.Module.__call__ is before
