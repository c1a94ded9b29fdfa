"""A step with gradients that are not finite in mixed precision is left out, and the precision goes off."""

from typing import Any
from unittest.mock import patch

import pytest
import torch
from hands_on import rooted, stepped, unfollowed
from torch import nn

from gputune.live import observer
from gputune.live.installer import Installer
from gputune.live.nets.not_finite import EVERY, NotFinite

X = torch.ones(2, 4)


def weights(model: Any) -> list[float]:
    return [float(value) for one in model.parameters() for value in one.flatten()]


def counts(optimizer: Any) -> list[float]:
    """How many steps it has counted of each parameter, where it counts them."""
    return [float(state["step"]) for state in optimizer.state.values() if "step" in state]


def step(model: Any, optimizer: Any, *, is_nan: bool) -> None:
    optimizer.zero_grad()
    model(X).sum().backward()
    if is_nan:
        for one in model[0].parameters():
            one.grad.flatten()[0] = float("nan")
    optimizer.step()


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad])
def test_one_step_is_left_out_and_mixed_precision_turned_off_for_good(kind: Any, fused: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer, off = stepped(model, kind), list[Any]()
    root = rooted(model, optimizer, failed=lambda names, why: off.extend(names))
    installer = Installer([root], guarded=True)
    values = {"amp_dtype": "bfloat16", "fused_optimizer": fused}
    blocked = installer.obstacles(values)
    installer.switch({name: value for name, value in values.items() if name not in blocked})
    with unfollowed():
        observer.follow(NotFinite(root))
        before = weights(model)
        step(model, optimizer, is_nan=True)
        assert weights(model) == before
        assert (off, root.call.dtype) == (["amp_dtype"], None)
        assert model[0].weight.grad is not None
        step(model, optimizer, is_nan=False)
        assert weights(model) != before
        step(model, optimizer, is_nan=True)  # in FP32 it is the program's own
        assert any(one != one for one in weights(model))  # noqa: PLR0124 - that it is NaN


@pytest.mark.parametrize("before", [0, EVERY - 1, EVERY])
def test_it_is_left_out_wherever_it_comes(before: int) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    root = rooted(model, optimizer)
    root.call.dtype = torch.bfloat16
    with unfollowed():
        observer.follow(NotFinite(root))
        for is_nan in [False] * before + [True, False]:
            step(model, optimizer, is_nan=is_nan)
    assert all(one.isfinite().all() for one in model.parameters())


def test_a_weight_without_a_gradient_is_not_counted() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    unused = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam([*model.parameters(), unused], fused=True)
    model(X).sum().backward()
    unused.grad = torch.ones(1)
    optimizer.step()
    root = rooted(model, optimizer)
    root.call.dtype = torch.bfloat16
    before = float(optimizer.state[unused]["step"])
    with unfollowed():
        observer.follow(NotFinite(root))
        for is_nan in [False] * 4 + [True, False]:
            step(model, optimizer, is_nan=is_nan)
    assert float(optimizer.state[unused]["step"]) == before


def test_a_step_that_raised_leaves_the_next_ones_tested() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer, off = torch.optim.SGD(model.parameters(), lr=0.1, fused=True), list[Any]()
    root = rooted(model, optimizer, failed=lambda names, why: off.extend(names))
    root.call.dtype = torch.bfloat16
    with unfollowed():
        observer.follow(NotFinite(root))
        model(X).sum().backward()
        with pytest.raises(ZeroDivisionError):
            optimizer.step(lambda: 1 / 0)
        step(model, optimizer, is_nan=True)
    assert off == ["amp_dtype"]


def test_dense_gradients_beside_sparse_ones_are_tested() -> None:
    model = nn.Sequential(nn.Embedding(4, 4, sparse=True), nn.Linear(4, 1))
    optimizer, off = torch.optim.SGD(model.parameters(), lr=0.1), list[Any]()
    root = rooted(model, optimizer, failed=lambda names, why: off.extend(names))
    root.call.dtype = torch.bfloat16
    with unfollowed():
        observer.follow(NotFinite(root))
        model(torch.tensor([1])).sum().backward()
        model[1].bias.grad.fill_(float("nan"))
        optimizer.step()
    assert off == ["amp_dtype"]


def test_of_many_modules_some_are_tested_and_what_reaches_all_before_one_is_found() -> None:
    model, off = nn.Sequential(*[nn.Linear(4, 4) for _ in range(300)]), list[Any]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    root = rooted(model, optimizer, failed=lambda names, why: off.extend(names))
    root.call.dtype = torch.bfloat16
    model[5].register_full_backward_hook(lambda module, given, got: (given[0] * float("inf"),))
    with unfollowed():
        observer.follow(NotFinite(root))
        model(X).sum().backward()
        optimizer.step()
    assert off == ["amp_dtype"]


def test_what_cannot_be_tested_is_said_and_ends_no_program() -> None:
    model, said = nn.Linear(4, 1), list[str]()
    optimizer = stepped(model, torch.optim.SGD)
    root = rooted(model, optimizer)
    root.call.dtype, root.say = torch.bfloat16, said.append
    with unfollowed(), patch("torch._amp_foreach_non_finite_check_and_unscale_", side_effect=RuntimeError("no")):
        observer.follow(NotFinite(root))
        model(X).sum().backward()
        optimizer.step()
        optimizer.step()
    assert said == ["Linear's gradients are not tested: RuntimeError: no"]


def test_finite_gradients_are_as_they_were_and_nothing_is_left_on_the_optimizer() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = stepped(model, torch.optim.Adam)
    root = rooted(model, optimizer)
    root.call.dtype = torch.bfloat16
    with unfollowed():
        observer.follow(NotFinite(root))
        before = set(vars(optimizer))
        counted = counts(optimizer)
        step(model, optimizer, is_nan=False)
        assert set(vars(optimizer)) == before
        assert counts(optimizer) == [number + 1 for number in counted]
        assert root.call.dtype is torch.bfloat16


def test_a_hook_of_the_programs_may_still_change_gradients() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer, off = stepped(model, torch.optim.SGD), list[Any]()

    def clean(optimizer: Any, *_: Any) -> None:
        for one in model.parameters():
            torch.nan_to_num_(one.grad)

    optimizer.register_step_pre_hook(clean)
    root = rooted(model, optimizer, failed=lambda names, why: off.extend(names))
    installer = Installer([root], guarded=True)
    assert installer.obstacles({"amp_dtype": "bfloat16"}) == {}
    installer.switch({"amp_dtype": "bfloat16"})
    with unfollowed():
        observer.follow(NotFinite(root))
        before = weights(model)
        step(model, optimizer, is_nan=True)
    assert weights(model) != before
    assert off == []
