"""What a program finds in a model, and what its hooks get, is in FP32 although the model computes in bfloat16."""

from collections import deque
from typing import Any

import pytest
import torch
from hands_on import rooted, stepped, unfollowed
from torch import nn
from torch.nn.utils import prune

from gputune.live import observer
from gputune.live.installer import Installer
from gputune.live.nets.kept_tensors import Hooks

X = torch.ones(2, 4)


class Net(nn.Module):
    """Keeps what its layer computes in other ways from its fifth call on, as at the end of an epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 4), 0
        self.features: Any = None
        self.listed: list[Any] = []
        self.last: deque[Any] = deque(maxlen=3)
        self.named: dict[str, Any] = {}

    def keep(self, out: Any) -> None:
        self.features = out
        self.listed.append(out)
        self.last.append(out)
        self.named["out"] = out

    def forward(self, x: Any) -> Any:
        self.calls += 1
        out = self.layer(x).relu()
        if self.calls > 4:
            self.keep(out)
        return self.layer(out)


def in_mixed_precision(model: Any) -> tuple[Any, Any, list[str]]:
    optimizer, off = stepped(model, torch.optim.SGD), list[str]()
    root = rooted(model, optimizer, failed=lambda names, why: off.extend([names] if isinstance(names, str) else names))
    installer = Installer([root], guarded=True)
    assert installer.obstacles({"amp_dtype": "bfloat16"}) == {}
    installer.switch({"amp_dtype": "bfloat16"})
    observer.follow(Hooks(root))
    return root, optimizer, off


def test_what_a_later_call_keeps_is_in_fp32_wherever_it_is() -> None:
    model = Net()
    with unfollowed():
        in_mixed_precision(model)
        for _ in range(6):
            model(X).sum().backward()
    kept = [model.features, *model.listed, *model.last, *model.named.values()]
    assert len(kept) > 4
    assert {one.dtype for one in kept} == {torch.float32}


@pytest.mark.parametrize("name", ["register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"])
def test_a_hook_that_comes_later_gets_fp32(name: str) -> None:
    seen, model = list[Any](), Net()
    with unfollowed():
        root, _, off = in_mixed_precision(model)
        model(X)
        getattr(model.layer, name)(lambda *given: seen.extend(one.dtype for one in given[1]) if given[1] else None)
        model(X.clone().requires_grad_()).sum().backward()
        assert (off, root.call.dtype) == (["amp_dtype"], None)
    assert set(seen) == {torch.float32}


def test_a_hook_on_an_activation_gets_fp32_and_the_call_counts_once() -> None:
    seen, model = list[Any](), Net()

    def forward(x: Any) -> Any:
        model.calls += 1
        out = model.layer(x)
        if model.calls > 4:
            out.register_hook(lambda gradient: seen.append(gradient.numpy().dtype.name))
        return model.layer(out)

    model.forward = forward  # type: ignore[method-assign]
    with unfollowed():
        root, _, off = in_mixed_precision(model)
        for _ in range(6):
            model(X).sum().backward()
        assert (off, root.call.dtype) == (["amp_dtype"], None)
    assert (seen, model.calls) == (["float32"] * 3, 7)


def test_hooks_of_other_models_and_of_torchs_pruning_leave_it_on() -> None:
    model = Net()
    with unfollowed():
        root, _, off = in_mixed_precision(model)
        nn.Linear(2, 2).register_forward_hook(lambda *_: None)
        prune.identity(nn.Linear(2, 2), "weight")  # type: ignore[no-untyped-call]
        assert (off, root.call.dtype) == ([], torch.bfloat16)


def test_the_call_within_which_a_module_gets_a_hook_returns_fp32() -> None:
    model = Net()

    def keep(out: Any) -> None:
        model.layer.register_forward_hook(lambda *_: None)

    model.keep = keep  # type: ignore[method-assign]
    with unfollowed():
        _, _, off = in_mixed_precision(model)
        assert {model(X).dtype for _ in range(6)} == {torch.float32}
    assert off == ["amp_dtype"]
