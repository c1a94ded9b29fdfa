"""Compiling in place, and the backward pass that is run ahead of the program: the program notices neither."""

import copy
import pickle
import random
import signal
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from gputune.knobs.compile import compile_in_place, compiled_call
from gputune.live.nets.backward import rehearse


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    given: list[Any] = []

    def compile_(function: Any, **_: Any) -> Any:
        given.append(function)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    return given


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())


def states() -> str:
    return str((torch.get_rng_state().tolist(), random.getstate(), numpy.random.get_state()))


def test_the_class_the_parameters_names_and_the_results_stay(compiled: list[Any]) -> None:
    model, x = network(), torch.randn(2, 4)
    names, expected = list(model.state_dict()), model(x)
    compile_in_place(model, print)
    assert torch.equal(model(x), expected)
    assert len(compiled) == 1
    assert type(model) is nn.Sequential
    assert list(model.state_dict()) == names


def test_what_is_compiled_is_code_that_torch_does_not_skip(compiled: list[Any]) -> None:
    """A frame of torch's own modules, as the forward of a Sequential is, would be left alone."""
    compile_in_place(network(), print)
    assert compiled[0].__module__ == "gputune.knobs.compile"


def test_a_copy_and_a_pickle_are_plain(compiled: list[Any]) -> None:
    model, x = network(), torch.randn(2, 4)
    compile_in_place(model, print)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(x), model(x))


def test_a_copy_of_all_attributes_computes_with_its_own_weights(compiled: list[Any]) -> None:
    model, x = network(), torch.randn(2, 4)
    compile_in_place(model, print)
    other = type(model).__new__(type(model))
    vars(other).update(vars(model))
    other._modules = dict(network()._modules)
    assert torch.equal(other(x), nn.Sequential(*other)(x))


@pytest.mark.slow
def test_where_compiling_fails_the_model_runs_without_it_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._dynamo

    def failing(*inputs: Any) -> Any:
        raise torch._dynamo.exc.TorchDynamoException("no C compiler\nand more")

    monkeypatch.setattr(torch, "compile", lambda function, **_: failing)
    model, x = network(), torch.randn(2, 4)
    expected = model(x)
    failed: list[str] = []
    compile_in_place(model, failed.append)
    with pytest.warns(UserWarning, match="torch.compile failed, and the model runs without it: no C compiler"):
        assert torch.equal(model(x), expected)
    assert torch.equal(model(x), expected)
    assert failed == ["no C compiler"]


@pytest.mark.slow
def test_an_error_of_the_model_itself_is_its_own(compiled: list[Any]) -> None:
    model = network()
    compile_in_place(model, print)
    with pytest.raises(RuntimeError, match="shapes"):
        model(torch.randn(2, 5))


class CompiledFunction(torch.autograd.Function):
    """As torch.compile's, by its name; the backward pass may fail as one of torch.compile's may."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, fails: bool) -> Any:
        ctx.x, ctx.fails = x, fails
        return x @ weight.T + bias

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        assert not ctx.fails, "expected stride 16==1"
        torch.rand(1), random.random(), numpy.random.rand()
        return None, grads[0].T @ ctx.x, grads[0].sum(0), None


class Net(nn.Module):
    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.layer, self.fails = nn.Linear(4, 4), fails

    def forward(self, x: Any) -> dict[str, Any]:
        out: Any = CompiledFunction.apply(x, self.layer.weight, self.layer.bias, self.fails)
        return {"logits": out, "shape": out.shape}


def test_a_backward_pass_that_fails_is_told() -> None:
    model = Net(fails=True)
    with pytest.raises(RuntimeError, match="in its backward pass: AssertionError: expected stride 16==1"):
        rehearse(model, (), model(torch.ones(2, 4)), "cpu")


def test_gradients_stay_as_they_are_and_the_program_can_still_run_it() -> None:
    model = Net()
    model.layer.bias.grad = torch.full((4,), 3.0)
    output, before = model(torch.ones(2, 4)), states()
    rehearse(model, (), output, "cpu")
    assert (model.layer.weight.grad, model.layer.bias.grad.tolist()) == (None, [3.0] * 4)
    assert states() == before
    output["logits"].sum().backward()
    assert model.layer.bias.grad.tolist() == [5.0] * 4


def test_what_the_program_hangs_on_gradients_is_not_called() -> None:
    called: list[str] = []
    model = Net()
    model.layer.weight.register_hook(lambda grad: called.append("of a weight"))
    model.layer.weight.register_post_accumulate_grad_hook(lambda weight: called.append("after a weight's"))
    rehearse(model, (), model(torch.ones(2, 4)), "cpu")
    model.register_full_backward_hook(lambda *_: called.append("of a module"))
    rehearse(model, (), model(torch.ones(2, 4)), "cpu")
    hooked, output = Net(), Net()
    logits = output(torch.ones(2, 4))["logits"]
    logits.register_hook(lambda grad: called.append("of an output"))
    rehearse(output, (), logits.view(-1), "cpu")
    inner = hooked(torch.ones(2, 4))["logits"]
    inner.register_hook(lambda grad: called.append("of an activation"))
    rehearse(hooked, inner, hooked(inner), "cpu")
    assert called == []


@pytest.mark.slow
@pytest.mark.parametrize("views", [False, True])
def test_a_model_that_is_compiled_as_a_whole_is_rehearsed(monkeypatch: pytest.MonkeyPatch, views: bool) -> None:
    model, real = network(), torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **_: real(function, backend="aot_eager"))
    passes, grad = list[bool](), torch.autograd.grad

    def counted(*inputs: Any, retain_graph: bool | None = None, **named: Any) -> Any:
        passes.append(retain_graph is True)  # torch traces the backward pass without
        return grad(*inputs, retain_graph=retain_graph, **named)

    monkeypatch.setattr(torch.autograd, "grad", counted)
    whole = nn.Sequential(model, nn.Flatten(0)) if views else model
    compiled_call(whole, rehearse=lambda given, output: rehearse(whole, given, output, "cpu"))(torch.ones(2, 4))
    assert passes.count(True) == 1


@pytest.mark.slow
def test_however_many_models_are_compiled_none_runs_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, real = list[Any](), torch.compile

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda function, **_: real(function, backend=backend))
    for _ in range(12):
        compiled_call(network())(torch.ones(2, 4))
    assert len(graphs) == 12


@pytest.mark.parametrize("output", [None, {}, torch.ones(3), [torch.ones(3)]])
def test_outputs_that_nothing_is_behind(output: Any) -> None:
    rehearse(Net(fails=True), (), output, "cpu")


def test_where_memory_does_not_suffice_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr(torch.autograd, "grad", full)
    model = Net()
    rehearse(model, (), model(torch.ones(2, 4)), "cpu")


class LateError(Exception):
    """A program's own, for a limit of time."""


def ring(*_: Any) -> None:
    raise LateError("time is up")


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A signal comes while torch compiles."""
    before, real = signal.signal(signal.SIGALRM, ring), torch.compile

    def backend(graph: Any, _: Any) -> Any:
        signal.raise_signal(signal.SIGALRM)
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda function, **_: real(function, backend=backend))
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.usefixtures("alarm")
class TestSignalsWhileTorchCompiles:
    def test_the_program_sees_what_its_handler_raised(self) -> None:
        with pytest.raises(LateError) as found:
            compiled_call(network())(torch.ones(2, 4))
        assert found.value.args == ("time is up",)
        assert found.value.__context__ is None

    def test_so_it_does_where_the_tool_compiled_the_model_in_place(self) -> None:
        model, failed = network(), list[str]()
        compile_in_place(model, failed.append)
        with pytest.raises(LateError):
            model(torch.ones(2, 4))
        assert failed == []

    def test_an_earlier_signal_that_the_program_handles_is_no_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> Any:
            raise torch._dynamo.exc.TorchDynamoException("no C compiler")

        monkeypatch.setattr(torch, "compile", lambda function, **_: fail)
        try:
            ring()
        except LateError:
            with pytest.raises(torch._dynamo.exc.TorchDynamoException):
                compiled_call(network())(torch.ones(2, 4))
