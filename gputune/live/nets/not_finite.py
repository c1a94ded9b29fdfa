"""A step whose gradients are not finite in mixed precision is left out, and mixed precision goes off.

The gradients are tested on their device, as torch's GradScaler tests them, and a fused optimizer leaves the step out by
itself: nothing waits for the device. Of another optimizer's step the answer is waited for, as GradScaler does. In FP32
gradients that are not finite are the program's own.
"""

from typing import Any

from .. import observer


class NotFinite(observer.Follower):
    """Tests the gradients of one model's optimizers before each step, while mixed precision is on."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._one: dict[Any, Any] = {}
        """By device, a tensor that holds 1."""
        self._waiting: list[tuple[Any, Any]] = []
        """Answers on their way to the host, with the events behind which they are there."""
        self._withheld: list[tuple[Any, Any]] = []
        """Weights whose gradients are put aside while a step runs."""

    def optimizer_stepping(self, optimizer: Any) -> None:
        root = self._root
        if root.model is None:
            observer.leave(self)
        elif optimizer in root.optimizers and root.call.dtype is not None and not hasattr(optimizer, "found_inf"):
            self._test(optimizer)

    def optimizer_stepped(self, optimizer: Any) -> None:
        if getattr(optimizer, "found_inf", None) is not None and getattr(optimizer, "by_gputune", False):
            del optimizer.found_inf, optimizer.by_gputune
        for weight, gradient in self._withheld:
            weight.grad = gradient
        self._withheld.clear()

    def _test(self, optimizer: Any) -> None:
        import torch

        weights = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
        gradients = [one.grad for one in weights]
        device = gradients[0].device if gradients else None
        if any(one.device != device or one.layout != torch.strided or one.dtype != torch.float32 for one in gradients):
            return
        if device is None:
            return
        one = self._one.setdefault(device, torch.ones((), device=device))
        found = torch.zeros((), device=device)
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, one)
        if all(group.get("fused") for group in optimizer.param_groups):
            optimizer.found_inf, optimizer.by_gputune = found, True
            self._read_later(found)
        elif found.item():
            self._withheld = list(zip(weights, gradients, strict=True))
            for weight in weights:
                weight.grad = None
            self._refuse()

    def _read_later(self, found: Any) -> None:
        import torch

        if found.device.type != "cuda":
            if found.item():
                self._refuse()
            return
        answer = torch.empty((), pin_memory=True).copy_(found, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._waiting.append((event, answer))
        while self._waiting and self._waiting[0][0].query():
            if self._waiting.pop(0)[1].item():
                self._refuse()
                return

    def _refuse(self) -> None:
        observer.leave(self, "optimizer_stepping")
        self._root.refuse(["amp_dtype"], "gradients were not finite in it, and the optimizer's step was left out")
