"""The iterations of a program's loop, told from outside."""

import weakref
from collections.abc import Callable
from typing import Any

from . import observer

SILENT, LATER = 10, 1000
"""The call from which on a program counts as inference-only: where it has made no optimizer, and where it has. nanoGPT
evaluates 400 batches before its first step."""


class Iterations(observer.Follower):
    """Calls `ended` after each iteration, in the thread and the process that trains.

    An iteration of a program that trains ends with the step of the optimizer that was seen last for the first time, so
    that a GAN's two optimizers, or a critic that steps five times for each step of the generator, have one period. A
    step within a step, as a subclass's that calls its parent's, is no step of its own.

    An iteration of an inference-only program ends with a call without gradients, of the model that was seen last for
    the first time. Many a program that trains evaluates first. So calls count from the `SILENT`-th on if no optimizer
    was made by then; else `suspected` is called, and they count from the `LATER`-th on. `mistaken` is called if an
    optimizer steps after calls have counted. Of a program that is known not to train, nothing is suspected.
    """

    gradients, finds_thread = False, True

    def __init__(
        self,
        ended: Callable[[], None],
        suspected: Callable[[], None] = lambda: None,
        mistaken: Callable[[], None] = lambda: None,
        *,
        trains: bool | None = None,
    ) -> None:
        self._ended, self._suspected, self._mistaken, self._trains = ended, suspected, mistaken, trains
        self.optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.are_calls = False
        """Whether the program's calls count as its iterations."""
        self.made = 0
        """How many iterations there were in all, with the calls of which `ended` was not told."""
        self._models: weakref.WeakSet[Any] = weakref.WeakSet()
        self._count = 0
        self._last: weakref.ref[Any] | None = None
        self._depth = 0
        self._training: observer.Place | None = None

    def start(self) -> None:
        if not self._trains:
            observer.follow(self, "model_called")
        observer.follow(self, "optimizer_stepping", "optimizer_stepped")

    def model_called(self, model: Any, inputs: Any, output: Any) -> None:
        if next(iter(model.parameters()), None) is None:
            return
        is_last = self._is_last(model, self._models)
        self._count += 1
        self.made += is_last
        if not self.are_calls and self._count >= SILENT:
            if self._trains is None and self._count < LATER and optimizer_made():
                if self._count == SILENT:
                    self._suspected()
                return
            self.are_calls = True
        if self.are_calls and is_last:
            self._ended()

    def optimizer_stepping(self, optimizer: Any) -> None:
        observer.leave(self, "model_called")
        if self.are_calls:
            self._mistaken()
        if self._training is None:
            self._training, self.made = observer.here(), 0
        if self._training == observer.here():
            self._depth += 1

    def optimizer_stepped(self, optimizer: Any) -> None:
        if self._training != observer.here() or self.are_calls:
            return
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._is_last(optimizer, self.optimizers):
            self.made += 1
            self._ended()

    def _is_last(self, one: Any, known: weakref.WeakSet[Any]) -> bool:
        """Whether it is the one that was seen last for the first time, or that one is gone."""
        if one not in known:
            known.add(one)
            self._last = weakref.ref(one)
        return self._last is None or self._last() in (one, None)


class GradientCalls(observer.Follower):
    """Calls `told` with how many calls with gradients a program has made, at the `SILENT`-th and whenever they have
    doubled, until a backward pass begins or an optimizer steps.
    """

    finds_thread = True

    def __init__(self, told: Callable[[int], None]) -> None:
        self._told, self._count, self._next = told, 0, SILENT

    def start(self) -> None:
        observer.follow(self)

    def model_called(self, model: Any, inputs: Any, output: Any) -> None:
        if next(iter(model.parameters()), None) is None:
            return
        self._count += 1
        if self._count == self._next:
            self._next *= 2
            self._told(self._count)

    def backward_begun(self, losses: list[Any]) -> None:
        observer.leave(self, "model_called", "backward_begun")

    def optimizer_stepping(self, optimizer: Any) -> None:
        observer.leave(self, "model_called", "backward_begun")


def optimizer_made() -> bool:
    """Whether any optimizer of torch's was made in this process: torch marks the class of the first of each kind."""
    import torch

    waiting = torch.optim.Optimizer.__subclasses__()
    for kind in waiting:
        waiting += kind.__subclasses__()
    return any(getattr(kind.step, "hooked", False) for kind in waiting)
