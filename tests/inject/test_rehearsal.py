"""Running a model's backward pass ahead of the program: what it finds out, and that the program notices nothing."""

from typing import Any

import pytest
import torch
from torch import nn

from gputune.inject.compiled import rehearse

X = torch.ones(2, 4)


class Layout(torch.autograd.Function):
    """Its backward pass fails, as one of torch.compile's may."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("expected stride 16==1")


class Net(nn.Module):
    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.layer, self.fails = nn.Linear(4, 4), fails

    def forward(self, x: Any) -> dict[str, Any]:
        out = self.layer(x)
        return {"logits": Layout.apply(out) if self.fails else out, "shape": out.shape}


def test_a_backward_pass_that_fails_is_told() -> None:
    model = Net(fails=True)
    with pytest.raises(RuntimeError, match="in its backward pass: AssertionError: expected stride 16==1"):
        rehearse(model, model(X), "cpu")


def test_gradients_stay_as_they_are_and_the_program_can_still_run_it() -> None:
    model, random = Net(), torch.get_rng_state()
    model.layer.bias.grad = torch.full((4,), 3.0)
    output = model(X)
    rehearse(model, output, "cpu")
    assert (model.layer.weight.grad, model.layer.bias.grad.tolist()) == (None, [3.0] * 4)
    assert torch.equal(torch.get_rng_state(), random)
    output["logits"].sum().backward()
    assert model.layer.bias.grad.tolist() == [5.0] * 4


def test_what_the_program_hangs_on_gradients_is_not_called() -> None:
    called: list[str] = []
    model = Net()
    model.layer.weight.register_hook(lambda grad: called.append("of a weight"))
    model.layer.weight.register_post_accumulate_grad_hook(lambda weight: called.append("after a weight's"))
    rehearse(model, model(X), "cpu")
    model.register_full_backward_hook(lambda *_: called.append("of a module"))
    rehearse(model, model(X), "cpu")
    assert called == []


@pytest.mark.parametrize("output", [None, {}, torch.ones(3), [torch.ones(3)]])
def test_outputs_that_nothing_is_behind(output: Any) -> None:
    rehearse(Net(fails=True), output, "cpu")


def test_where_memory_does_not_suffice_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr(torch.autograd, "grad", full)
    model = Net()
    rehearse(model, model(X), "cpu")
