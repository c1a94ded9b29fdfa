"""Compiling in place: the model stays what it is, and runs on where compiling fails."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from gputune.inject.compiled import compile_in_place


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What torch.compile was given; instead of compiling, it calls it."""
    given: list[Any] = []

    def compile_(function: Any) -> Any:
        given.append(function)
        return function

    monkeypatch.setattr(torch, "compile", compile_)
    return given


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())


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
    assert compiled[0].__module__ == "gputune.inject.compiled"


def test_a_copy_and_a_pickle_are_plain(compiled: list[Any]) -> None:
    model, x = network(), torch.randn(2, 4)
    compile_in_place(model, print)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(x), model(x))


@pytest.mark.slow
def test_where_compiling_fails_the_model_runs_without_it_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._dynamo

    def failing(*inputs: Any) -> Any:
        raise torch._dynamo.exc.TorchDynamoException("no C compiler\nand more")

    monkeypatch.setattr(torch, "compile", lambda function: failing)
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
