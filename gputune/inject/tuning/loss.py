"""The loss of each iteration: the scalars that a program calls `backward` on, kept on their device until the end."""

from __future__ import annotations

import functools
import weakref
from typing import Any


class Losses:
    """The losses of all iterations since `start`. An iteration with several backward calls, as with accumulated
    gradients, has their mean.

    What a `GradScaler` has scaled counts as it was before. `torch.autograd.grad` is not seen, nor is a backward call on
    anything but a scalar.
    """

    def __init__(self) -> None:
        self._iterations: list[Any] = []
        self._now: list[Any] = []
        self._depth = 0
        self._scaled: list[tuple[weakref.ref[Any], Any]] = []
        """The losses that a `GradScaler` scaled in this iteration, each with its value before."""

    def start(self) -> None:
        import torch

        self._follow(torch.Tensor, "backward")
        self._follow(torch.autograd, "backward")
        scaler = torch.amp.GradScaler
        scale = scaler.scale

        @functools.wraps(scale)
        def scaled(this: Any, outputs: Any) -> Any:
            answer = scale(this, outputs)
            if isinstance(answer, torch.Tensor):
                self._scaled.append((weakref.ref(answer), outputs.detach()))
            return answer

        scaler.scale = scaled

    def stepped(self) -> None:
        """An iteration has ended."""
        import torch

        self._iterations.append(torch.stack(self._now).mean() if self._now else None)
        self._now, self._scaled = [], []

    def plain(self) -> list[float | None]:
        """The loss of each iteration, which may be no number; None where no loss was seen."""
        return [None if one is None else float(one) for one in self._iterations]

    def _follow(self, holder: Any, name: str) -> None:
        import torch

        original = getattr(holder, name)

        @functools.wraps(original)
        def followed(*inputs: Any, **named: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*inputs, **named)
            self._depth += 1
            try:
                if self._depth == 1:
                    self._note(inputs[0] if inputs else named.get("tensors"))
                return original(*inputs, **named)
            finally:
                self._depth -= 1

        setattr(holder, name, followed)

    def _note(self, given: Any) -> None:
        import torch

        for one in [given] if isinstance(given, torch.Tensor) else given or ():
            if isinstance(one, torch.Tensor) and one.numel() == 1:
                before = [value for reference, value in self._scaled if reference() is one]
                value = (before[-1] if before else one.detach()).float().reshape(()).clone()
                # Losses on several devices have their mean on the first one's.
                self._now.append(value.to(self._now[0].device, non_blocking=True) if self._now else value)
