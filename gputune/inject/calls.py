"""The iterations of a program that trains nothing, told by its models' calls without gradients.

Many a program that trains calls its model without gradients first, to see how it does, or for its shapes; and a
program's first few calls are seldom worth a thing. So this counts from the `SILENT`-th call on where no optimizer has
been made by then. One with an optimizer may evaluate only, or before it trains, which nobody knows but whoever sees it
end: it is `suspected`, and counts from the `LATER`-th call on.

Where several models take turns, an iteration ends with the call of the one that was seen last for the first time, as
with the optimizers of a program that trains.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .outermost import Outermost

SILENT, LATER = 10, 1000
"""The call from which on a program counts as one that trains nothing: where it has made no optimizer, and where it has.
nanoGPT evaluates 400 batches before its first step."""


class Calls:
    """Calls `ended` after each iteration of a program that trains nothing, from the `SILENT`-th call on, whether or not
    an optimizer was made; with a function `suspected` it calls that instead where one was.
    """

    def __init__(self, ended: Callable[[], None], suspected: Callable[[], None] | None = None) -> None:
        self._ended, self._suspected = ended, suspected
        self._calls = Outermost(self._called, gradients=False, found=True)
        self._models: weakref.WeakSet[Any] = weakref.WeakSet()
        self._last: weakref.ref[Any] | None = None
        self._count = 0
        self.counts = False
        """Whether the program trains nothing, as far as can be told, so that its calls are its iterations."""

    def start(self) -> None:
        self._calls.start()

    def stop(self) -> None:
        self._calls.stop()

    def _called(self, model: Any, *_: Any) -> None:
        if next(iter(model.parameters()), None) is None:
            return
        if model not in self._models:
            self._models.add(model)
            self._last = weakref.ref(model)
        self._count += 1
        if not self.counts and self._count >= SILENT:
            if self._suspected is not None and self._count < LATER and optimizer_made():
                if self._count == SILENT:
                    self._suspected()
                return
            self.counts = True
        if self.counts and self._last is not None and self._last() in (model, None):
            self._ended()


def optimizer_made() -> bool:
    """Whether any optimizer of torch's was made in this process: torch marks the class of the first of each kind."""
    import torch

    return any(getattr(kind.step, "hooked", False) for kind in _kinds(torch.optim.Optimizer))


def _kinds(kind: Any) -> Iterator[Any]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)
