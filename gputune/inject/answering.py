"""A program that trains nothing, as far as can be told: its models are found in its calls without gradients.

Where an optimizer's step shows later that these came before a training, what was put in is taken out again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import Calls
from .watch import Watch

PATIENCE = 3
"""So many iterations are watched for models."""


class Answering:
    """Calls `found` once, with the watch that has seen the models, after the first calls of such a program."""

    def __init__(self, device: str, found: Callable[[Watch], None], failed: Callable[[Exception], None]) -> None:
        self._found, self._failed = found, failed
        self._calls, self._watch = Calls(self._ended), Watch(device, gradients=False)
        self._left = PATIENCE
        self._undo: list[Callable[[], object]] = []

    def start(self) -> None:
        self._calls.start()

    def stop(self) -> None:
        self._calls.stop()
        self._watch.stop()

    def undo_by(self, *undoing: Callable[[], object]) -> None:
        """How something that was put in is taken out again."""
        self._undo += undoing

    def undo(self) -> bool:
        """It trains: take out what was put in. Returns whether there was any."""
        self.stop()
        had = bool(self._undo)
        with usual_mode():
            while self._undo:
                self._undo.pop()()
        return had

    def _ended(self) -> None:
        """After every iteration."""
        try:
            self._follow()
        except Exception as error:
            self.stop()
            self._failed(error)

    def _follow(self) -> None:
        if not self._watch.active:
            self._watch.start()
            return
        self._left -= 1
        if self._watch.seen or not self._left:
            self.stop()
            self._found(self._watch)


def usual_mode() -> Any:
    """Outside of torch's inference mode, in which a program may be and nothing that lasts can be made."""
    import torch

    return torch.inference_mode(False)
