"""One process in a run of a program that is being tuned: it speaks up after its first step, and obeys.

Whatever goes wrong in here ends the process, since nothing that it would measure afterwards is worth anything.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn

from ..advice import Advice
from ..loader import entry
from ..trial import Trial
from . import ranks
from .channel import Channel, Lost
from .ending import end, quiesce
from .iterations import Iterations
from .loaders import Loaders

Rows = Callable[[], list[dict[str, Any]]]

WORK = {"measure": "measuring", "guard": "recording", "time": "timing"}
"""The module whose `work` says what a process does in each role: a generator of how many iterations to let pass before
it goes on.
"""


class Run:
    """This process of the run."""

    def __init__(self, trial: Trial, rows: Rows, device: str) -> None:
        self.trial = trial
        self.rows = rows
        """Returns the rows that say how each setting was applied in this process, as `Applied.plain`."""
        self.device = device
        """The type of device that the program is tuned for."""
        self.loaders = Loaders()
        self.iterations = Iterations(self._ended, self._suspected, self._mistaken, trains=trial.trains)
        self._channel: Channel | None = None
        self._work: Iterator[int] | None = None
        self._left = 1

    def start(self) -> None:
        self.loaders.start()
        self.iterations.start()
        module = importlib.import_module(f".{WORK[self.trial.role]}", __package__)
        self._work = module.work(self)
        self._left = self._next()

    def send(self, **message: Any) -> None:
        """Raises Lost."""
        if self._channel is None:
            self._channel = Channel(self.trial.socket)
            self._channel.send(hello=self._hello())
            self._follow_exceptions()
        self._channel.send(**message)

    def receive(self) -> dict[str, Any]:
        """The next order; ends the process where that is the order. Raises Lost."""
        assert self._channel is not None
        order = self._channel.receive()
        if order.get("do") == "end":
            self.leave()
        return order

    def leave(self) -> NoReturn:
        """Flush, say so, and end when all ranks have done the same."""
        quiesce()
        self.send(ended=True)
        assert self._channel is not None
        self._channel.receive()
        os._exit(0)

    def raised(self, error: BaseException) -> None:
        """Tell of an exception, and end: a failed step is never repeated."""
        text = " ".join(str(error).split())[:300]
        self.send(raised=f"{type(error).__name__}: {text}", out_of_memory=_is_out_of_memory(error))
        end(1)

    def _suspected(self) -> None:
        """It has an optimizer, and calls its models without gradients: whether it trains, its end will show."""
        with suppress(Lost):
            self.send(answers=True)

    def _mistaken(self) -> None:
        """An optimizer steps after calls without gradients that were taken for the program's steps."""
        with suppress(Lost):
            self.send(trains=True)
        end(1)

    def _ended(self) -> None:
        """After each iteration."""
        self._left -= 1
        if self._left > 0:
            return
        try:
            self._left = self._next()
        except Lost:
            end(1)
        except Exception as error:
            self.raised(error)

    def _next(self) -> int:
        """How many iterations are to pass now. The work never ends by itself."""
        assert self._work is not None
        return next(self._work)

    def _hello(self) -> dict[str, Any]:
        import torch

        return {
            "pid": os.getpid(), "entry": entry(), "torch": str(torch.__version__), "device": self.device,
            **ranks.place(),
        }  # fmt: skip

    def _follow_exceptions(self) -> None:
        """Tell of an exception that ends the program, whose own words go where they always do."""
        original = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            original(kind, error, trace)
            if self._channel is not None and self._channel.ours:
                self.raised(error)

        sys.excepthook = hook


def start(trial: Trial, advice: Advice | None, rows: Rows) -> None:
    """Begin, right after `import torch`."""
    import torch

    if trial.scratch:
        from .. import scratch

        scratch.redirect(trial.scratch)
    if trial.shift is not None:
        from .seeds import shift

        shift(trial.shift)
    device = advice.device if advice else "cuda" if torch.cuda.is_available() else "cpu"
    Run(trial, rows, device).start()


def _is_out_of_memory(error: BaseException) -> bool:
    return type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
