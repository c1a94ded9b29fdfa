"""Small models, as knobs get them."""

import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import Mock

import torch
from torch import nn

from gputune.live import observer
from gputune.live.finding import Seen
from gputune.live.root import Root

ROOT = ("device", "gradients", "features", "failed")


@contextmanager
def unfollowed() -> Iterator[None]:
    """What follows the program when it ends follows no more, so that torch is as it was."""
    before, call = {event: list(found) for event, found in observer.followers.items()}, nn.Module.__call__
    yield
    for event, found in observer.followers.items():
        for one in [one for one in found if one not in before[event]]:
            observer.leave(one, event)
    assert nn.Module.__call__ is call


def capture() -> None:
    """Begin a CUDA graph, as far as that is possible without a GPU."""
    with suppress(Exception):
        torch.cuda.CUDAGraph.capture_begin(Mock())


class LateError(RuntimeError):
    """A program's own, for a limit of time."""


@contextmanager
def alarm() -> Iterator[None]:
    """The handler of a signal raises."""

    def handler(number: int, frame: Any) -> None:
        raise LateError("time is up")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


def ring(*_: Any) -> None:
    """Whatever this stands for, the signal comes meanwhile."""
    signal.raise_signal(signal.SIGALRM)


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2 * ctx.saved_tensors[0]


def mlp() -> Any:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def convnet() -> Any:
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3))


def rooted(model: Any, *optimizers: Any, **more: Any) -> Root:
    """The model as it was found; `more` are fields of Root, and else of Seen."""
    own = {"device": "cpu", **{name: value for name, value in more.items() if name in ROOT}}
    seen = {name: value for name, value in more.items() if name not in ROOT}
    found = Seen(model=weakref.ref(model), shapes=[], **seen)
    root = Root(model=model, seen=found, optimizers=optimizers, **own)
    vars(root)["alive"] = (model, optimizers)
    return root


def stepped(model: Any, kind: Any) -> Any:
    """An optimizer of the model that has done a step, with momentum where it has that."""
    momentum = {"momentum": 0.9} if "momentum" in kind.__init__.__code__.co_varnames else {}
    optimizer = kind(model.parameters(), lr=0.01, **momentum)
    shape = (2, 3, 8, 8) if any(one.dim() == 4 for one in model.parameters()) else (2, 4)
    model(torch.ones(shape)).square().mean().backward()
    optimizer.step()
    return optimizer
