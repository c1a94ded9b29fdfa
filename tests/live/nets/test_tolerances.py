"""A model that iterates to a tolerance in its forward stays in FP32."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hands_on import rooted
from torch import nn

from gputune.knobs import amp_dtype, matmul_precision
from gputune.live.finding import ModelFinder

TOLERANCE = 1e-4
METHODS = ("__lt__", "__gt__", "__bool__", "__float__", "item")


def by_norm(z: Any, x: Any) -> Any:
    while (d := 0.5 * (x - z)).norm() > TOLERANCE * x.norm():
        z = z + d
    return z


def by_all(z: Any, x: Any) -> Any:
    for _ in range(50):
        d = 0.5 * (x - z)
        z = z + d
        if (d.abs() < TOLERANCE).all():
            break
    return z


def by_item(z: Any, x: Any) -> Any:
    error = 1.0
    while error > TOLERANCE:
        d = 0.5 * (x - z)
        z, error = z + d, d.abs().max().item()
    return z


def by_float(z: Any, x: Any) -> Any:
    for _ in range(50):
        d = 0.5 * (x - z)
        z = z + d
        if float(d.norm()) <= TOLERANCE:
            break
    return z


class Clipped(nn.Linear):
    """A layer that looks at what it has computed."""

    def forward(self, x: Any) -> Any:
        y = super().forward(x)
        return y / y.abs().max() if y.abs().max() > 1e-8 else y


LAYERS = nn.Sequential(*[Clipped(3, 3) for _ in range(5)])


def by_experts(z: Any, x: Any) -> Any:
    chosen = x.argmax(-1)
    for expert in range(3):
        mask = chosen == expert
        if mask.any() and mask.sum().item() > 0:
            z = z + mask[:, None] * x
    return z


def once(z: Any, x: Any) -> Any:
    return x if x.max() > 1e4 or x.min() < -1e4 else z + x


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "a norm": by_norm, "all elements": by_all, "item": by_item, "float": by_float,
}  # fmt: skip
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "layers that look at their outputs": lambda z, x: LAYERS(x), "experts": by_experts, "a single look": once,
}  # fmt: skip


class Net(nn.Module):
    def __init__(self, solve: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layer, self.solve = nn.Linear(3, 3), solve

    def forward(self, x: Any) -> Any:
        x = self.layer(x)
        return self.solve(torch.zeros_like(x), x)


def obstacles(solve: Callable[[Any, Any], Any]) -> list[str]:
    torch.manual_seed(0)
    model, finder = Net(solve), ModelFinder("cpu")
    finder.start()
    losses = [model(torch.rand(4, 3)).square().mean() for _ in range(3)]
    sum(losses).backward()  # type: ignore[union-attr]
    assert all(one.item() > 0 for one in losses for _ in range(2))  # which is outside of the model
    finder.stop()
    root = rooted(model, torch.optim.Adam(model.parameters()))
    root.seen, root.features = finder.seen[id(model)], finder.features
    found = amp_dtype.obstacle(root, "bfloat16"), matmul_precision.obstacle(root, "tf32")
    return [one.why for one in found if one]


@pytest.mark.parametrize("solve", LOOPS.values(), ids=LOOPS)
def test_neither_mixed_precision_nor_tf32_is_for_it(solve: Callable[[Any, Any], Any]) -> None:
    assert obstacles(solve) == [
        "its forward iterates to a tolerance, which half precision may never meet",
        "a forward iterates to a tolerance, which TF32 may never meet",
    ]


@pytest.mark.parametrize("solve", OTHERS.values(), ids=OTHERS)
def test_a_look_at_numbers_is_no_such_loop(solve: Callable[[Any, Any], Any]) -> None:
    assert obstacles(solve) == []


def test_tensors_are_as_they_were_afterwards() -> None:
    obstacles(by_norm)
    assert not any(name in vars(torch.Tensor) for name in METHODS)
    assert bool(torch.tensor(1.0) < 2)
