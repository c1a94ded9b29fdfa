"""A step whose gradients are not finite in mixed precision is left out, and mixed precision goes off.

The gradients are tested on their device, as torch's GradScaler tests them, and a fused optimizer leaves the step out by
itself: nothing waits for the device. Of another optimizer's step the answer is waited for, as GradScaler does. In FP32
gradients that are not finite are the program's own.

One gradient of each module is tested, the smallest, and of at most `MOST` modules. bfloat16 has FP32's range, so what
it makes infinite is an activation or the gradient of one, which reaches all weights of a module and those before it.
"""

import math
import weakref
from operator import attrgetter
from typing import Any

from .. import flags, observer

MOST = 96
"""Modules, evenly spread: 500 took 180 us of each step, which is 3.6 % of one of 5 ms, and these take 40."""
EVERY = 16
"""The answers for so many steps are read together."""


class NotFinite(observer.Follower):
    """Tests the gradients of one model before each step of its optimizers, while mixed precision is on."""

    def __init__(self, root: Any) -> None:
        self._root = root
        found = []
        for module in root.model.modules():
            if own := [one for one in module._parameters.values() if one is not None and one.requires_grad]:
                found.append(min(own, key=lambda one: one.numel()))
        tested = found[:: math.ceil(len(found) / MOST) or 1]
        self._weights: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary({root.model: tested})
        self._answers: list[Any] = []
        self._on_its_way: tuple[Any, Any] | None = None
        """An answer that is being copied to the host, and the event behind which it is there."""
        self._withheld: list[tuple[Any, Any]] = []
        """Weights whose gradients are put aside while a step runs."""
        self._marked: Any = None
        """The fused optimizer that was told of an answer, for the step that runs."""

    def optimizer_stepping(self, optimizer: Any) -> None:
        root = self._root
        if root.model is None:
            observer.leave(self)
        elif root.call.dtype is not None and optimizer in root.optimizers and self._is_free(optimizer):
            try:
                self._test(optimizer)
            except RuntimeError as error:
                observer.leave(self)
                root.say(f"{root.name}'s gradients are not tested: {flags.error_text(error)}")

    def _is_free(self, optimizer: Any) -> bool:
        """Whether no scaler of the program's tells it of an answer. One of its own stays behind if a step raises."""
        return self._marked is optimizer or not hasattr(optimizer, "found_inf")

    def optimizer_stepped(self, optimizer: Any) -> None:
        if self._marked is optimizer:
            self._marked = None
            vars(optimizer).pop("found_inf", None)
        for weight, gradient in self._withheld:
            weight.grad = gradient
        self._withheld.clear()

    def _test(self, optimizer: Any) -> None:
        import torch

        tested = map(attrgetter("grad"), self._weights[self._root.model])
        gradients = [one for one in tested if one is not None and not one.is_sparse]
        if not gradients:
            return
        device = gradients[0].device
        found = torch.zeros((), device=device)
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.ones((), device=device))
        if all(group.get("fused") for group in optimizer.param_groups):
            optimizer.found_inf, self._marked = found, optimizer
            self._read_later(found)
        elif found.item():
            own = [one for group in optimizer.param_groups for one in group["params"]]
            self._withheld = [(one, one.grad) for one in own]
            for one in own:
                one.grad = None
            self._refuse()

    def _read_later(self, found: Any) -> None:
        import torch

        if found.device.type != "cuda":
            if found.item():
                self._refuse()
            return
        self._answers.append(found)
        if self._on_its_way is None and len(self._answers) >= EVERY:
            answer = torch.stack(self._answers).sum().to("cpu", non_blocking=True)
            event = torch.cuda.Event()
            event.record()
            self._answers, self._on_its_way = [], (answer, event)
        elif self._on_its_way is not None and self._on_its_way[1].query():
            (answer, _), self._on_its_way = self._on_its_way, None
            if answer.item():
                self._refuse()

    def _refuse(self) -> None:
        observer.leave(self, "optimizer_stepping")
        self._root.refuse(["amp_dtype"], "gradients were not finite in it, and the optimizer's step was left out")
