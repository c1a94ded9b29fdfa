"""A guard run records the loss of every iteration, and at one of them the gradients and the optimizer's step.

Runs of equal seeds are compared at the first iteration in which all optimizers have stepped twice before: settings are
turned on after the second step, so by then they are in force, and weights, batch and random state are still the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import observer, patches
from ..orders import Done, Gradient, Passed, Record, Recorded
from .observations import Losses, Shadow, sketch

if TYPE_CHECKING:
    from .run import Run


COMPARED = 3
"""The iteration that is compared where one optimizer steps in each. A GAN's, whose two are told apart only when the
second one has stepped, is the next one."""
PATIENCE = 8
"""After so many iterations an optimizer that has not stepped twice is waited for no longer."""


class Recorder(observer.Follower):
    """Its owner tells when an iteration has ended. Nothing is drawn from the program's random state, and nothing that
    fails in here reaches the program.
    """

    def __init__(self, compared: int = COMPARED) -> None:
        self._steps_before = compared - 1
        self._compared = compared
        self._number = 1
        self._losses = Losses()
        self._gradients: list[Gradient] = []
        self._steps: list[tuple[float, float, float]] = []
        self._unchecked: list[str] = []
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._shadow: Shadow | None = None
        self._depth = 0

    def start(self) -> None:
        observer.follow(self._losses)
        observer.follow(self)

    @property
    def is_compared(self) -> bool:
        return self._number == self._compared

    def iteration_ended(self) -> None:
        self._number += 1
        self._depth = 0
        self._losses.iteration_ended()
        waits = min(self._counts.values(), default=0) < self._steps_before
        if self.is_compared and waits and self._number < PATIENCE:
            self._compared += 1

    def recorded(self) -> Recorded:
        return Recorded(
            losses=tuple(self._losses.plain()),
            compared=self._compared,
            gradients=tuple(self._gradients),
            steps=tuple(self._steps),
            unchecked=tuple(self._unchecked),
        )

    def optimizer_stepping(self, optimizer: Any) -> None:
        self._depth += 1
        if self._depth > 1:  # a subclass's step that calls its parent's
            return
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        if self.is_compared:
            self._attempt(lambda: self._record(optimizer))

    def optimizer_stepped(self, optimizer: Any) -> None:
        self._depth = max(0, self._depth - 1)
        shadow = self._shadow
        if self._depth == 0 and shadow is not None:
            self._shadow = None
            self._attempt(lambda: self._steps.extend(shadow.compare()))

    def _record(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            self._gradients += [_image(one.grad) for one in group["params"] if one.grad is not None]
        if why := Shadow.obstacle(optimizer):
            self._unchecked.append(why)
        else:
            self._shadow = Shadow(optimizer)

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._unchecked.append(" ".join(f"{type(error).__name__}: {error}".split())[:200])


def _image(gradient: Any) -> Gradient:
    import torch

    if gradient.is_sparse:
        gradient = gradient.coalesce().values()
    if gradient.is_complex():
        gradient = torch.view_as_real(gradient)
    return Gradient(float(gradient.float().norm()), tuple(sketch(gradient)))


def work(run: Run) -> Iterator[int]:
    """Record as many iterations as are ordered."""
    from torch._inductor import config

    config.fallback_random = True  # so that compiled code draws the random numbers that it draws uncompiled
    recorder = Recorder()
    recorder.start()
    if run.assignment.other_numbers:
        patches.dropout(lambda: recorder.is_compared)
    yield 1
    recorder.iteration_ended()
    run.send(Done())
    order = run.receive()
    assert isinstance(order, Record)
    for _ in range(order.steps - 1):
        yield 1
        recorder.iteration_ended()
        run.send(Passed())
    run.send(recorder.recorded())
    while True:
        run.receive()
