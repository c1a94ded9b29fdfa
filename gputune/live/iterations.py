"""The iterations of a program's loop, told from outside."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from .inference import Calls


class Iterations:
    """The iterations of a program's loop, told from outside by the steps of its optimizers, or by its models' calls if
    it trains nothing.

    If several optimizers take turns, an iteration ends with the step of the one that was seen last for the first time:
    a GAN's two, or a critic that steps five times for each step of the generator, have one period each. A step within a
    step, as a subclass's that calls its parent's, is no step of its own.

    Calls `ended` after each iteration, in the thread and the process that trains. `trains` says whether it does,
    where that is known. Calls `suspected` where it may be that it does not, and `mistaken` where an optimizer steps in
    a program that was taken for one that trains nothing.
    """

    def __init__(
        self,
        ended: Callable[[], None],
        suspected: Callable[[], None] = lambda: None,
        mistaken: Callable[[], None] = lambda: None,
        *,
        trains: bool | None = None,
    ) -> None:
        self._ended, self._mistaken, self._trains = ended, mistaken, trains
        self.calls = Calls(ended, suspected if trains is None else None)
        self.optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._last: weakref.ref[Any] | None = None
        self._depth = 0
        self._home = (os.getpid(), 0)

    def start(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        if not self._trains:
            self.calls.start()
        register_optimizer_step_pre_hook(self._begun)
        register_optimizer_step_post_hook(self._stepped)

    def _begun(self, *_: Any) -> None:
        self.calls.stop()
        if self.calls.counts:
            self._mistaken()
        if not self._home[1]:
            self._home = (os.getpid(), threading.get_ident())
        if self._at_home():
            self._depth += 1

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if not self._at_home() or self.calls.counts:
            return
        self._depth -= 1
        if self._depth > 0:
            return
        self._depth = 0
        if optimizer not in self.optimizers:
            self.optimizers.add(optimizer)
            self._last = weakref.ref(optimizer)
        if self._last is None or self._last() in (optimizer, None):
            self._ended()

    def _at_home(self) -> bool:
        return (os.getpid(), threading.get_ident()) == self._home
