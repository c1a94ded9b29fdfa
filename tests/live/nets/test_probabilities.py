"""A model whose sigmoids a loss takes logarithms of stays in FP32."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hands_on import rooted
from torch import nn
from torch.nn import functional as F

from gputune.knobs import amp_dtype
from gputune.live.finding import ModelFinder

Y = torch.tensor([[0.0], [1.0]])


class Net(nn.Module):
    def __init__(self, end: Callable[[Any], Any]) -> None:
        super().__init__()
        self.layer, self.end = nn.Linear(3, 1), end

    def forward(self, x: Any) -> Any:
        return self.end(self.layer(x))


def by_hand(p: Any) -> Any:
    return -(Y * torch.log(p + 1e-8) + (1 - Y) * torch.log1p(-p)).mean()


def obstacle(end: Callable[[Any], Any], loss: Callable[[Any], Any]) -> str:
    model, finder = Net(end), ModelFinder("cpu")
    finder.start()
    loss(model(torch.rand(2, 3))).backward()
    finder.stop()
    root = rooted(model, torch.optim.Adam(model.parameters()))
    root.seen, root.features = finder.seen[id(model)], finder.features
    found = amp_dtype.obstacle(root, "bfloat16")
    return found.why if found else ""


class _DDPSink(torch.autograd.Function):  # type: ignore[misc]
    """As DistributedDataParallel has it behind a model's outputs."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0]


@pytest.mark.parametrize("loss", [lambda p: F.binary_cross_entropy(p.view(2, 1), Y), by_hand])
@pytest.mark.parametrize(
    "end",
    [
        torch.sigmoid,
        nn.Sigmoid(),
        lambda x: x.sigmoid().view(-1, 1).squeeze(1)[:, None],
        lambda x: 1 - x.sigmoid(),
        lambda x: 0.9 * x.sigmoid(),
        lambda x: torch.where(Y > 2, Y, x.sigmoid()),
        lambda x: _DDPSink.apply(x.sigmoid()),
    ],
)
def test_logarithms_of_its_sigmoids_keep_it_in_fp32(end: Any, loss: Any) -> None:
    assert "logarithms of its sigmoids" in obstacle(end, loss)


def test_a_forward_that_takes_them_itself_counts() -> None:
    assert "logarithms of its sigmoids" in obstacle(lambda x: x.sigmoid().log(), lambda out: -out.mean())


@pytest.mark.parametrize(
    ("end", "loss"),
    [
        (nn.Identity(), lambda x: F.binary_cross_entropy(torch.sigmoid(x), Y)),
        (nn.Identity(), lambda x: F.binary_cross_entropy_with_logits(x, Y)),
        (nn.Sigmoid(), lambda p: F.mse_loss(p, Y)),
        (lambda x: torch.sigmoid(x) * x, lambda x: F.binary_cross_entropy(torch.sigmoid(x), Y)),
        (lambda x: torch.cat([x, -x], 1).softmax(1), lambda p: F.nll_loss(p.log(), Y.long().flatten())),
    ],
    ids=["sigmoid_in_the_loop", "logits", "no_logarithm", "a_gate", "softmax"],
)
def test_what_is_computed_in_fp32_or_needs_no_logarithm_does_not(end: Any, loss: Any) -> None:
    assert "sigmoids" not in obstacle(end, loss)
