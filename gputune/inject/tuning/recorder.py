"""What a guard run records: the loss of every iteration, and at one of them the gradients and the optimizer's step."""

from __future__ import annotations

from typing import Any

from .loss import Losses
from .shadow import Shadow
from .sketch import sketch

COMPARED = 3
"""The iteration at which runs of equal seeds still have equal weights, and settings are in force for the first time."""


class Recorder:
    def __init__(self, compared: int = COMPARED) -> None:
        self._compared = compared
        self._number = 1
        self._losses = Losses()
        self._gradients: list[list[Any]] = []
        self._steps: list[list[float]] = []
        self._shadow: Shadow | None = None
        self._busy = False

    def start(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._losses.start()
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    @property
    def is_compared(self) -> bool:
        """Whether this is the iteration whose gradients are kept."""
        return self._number == self._compared

    def stepped(self) -> None:
        """An iteration has ended."""
        self._number += 1
        self._losses.stepped()

    def plain(self) -> dict[str, Any]:
        """For JSON: `losses`, the number of the `compared` iteration (from 1), by parameter the norm, the number of
        elements and the sketch of its `gradients`, and what `Shadow.compare` says of its `steps`.
        """
        return {
            "losses": self._losses.plain(),
            "compared": self._compared,
            "gradients": self._gradients,
            "steps": self._steps,
        }

    def _before(self, optimizer: Any, *_: Any) -> None:
        if not self.is_compared or self._busy:
            return
        self._busy = True
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is not None and gradient.is_floating_point() and not gradient.is_sparse:
                    self._gradients.append([float(gradient.norm()), gradient.numel(), sketch(gradient)])
        if Shadow.fits(optimizer):
            self._shadow = Shadow(optimizer)

    def _after(self, *_: Any) -> None:
        self._busy = False
        if self._shadow is not None:
            self._steps += self._shadow.compare()
            self._shadow = None
