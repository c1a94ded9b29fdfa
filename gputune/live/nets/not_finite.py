"""A step whose gradients are not finite in mixed precision is left out, and mixed precision goes off.

The gradients are tested on their device, as torch's GradScaler tests them, and a fused optimizer leaves the step out by
itself: nothing waits for the device. Of another optimizer's step the answer is waited for, as GradScaler does. In FP32
gradients that are not finite are the program's own.

One gradient of each module is tested, the smallest, and of at most `MOST` modules. bfloat16 has FP32's range, so what
it makes infinite is an activation or the gradient of one, which reaches all weights of a module and those before it.

torch's fused Adam has counted a step by the time that it leaves it out, and takes the answer off each parameter's
count, in every step: 150 us for 370 parameters on a CPU. Here that is done once, when mixed precision goes off.
"""

import math
import weakref
from functools import cache, wraps
from operator import attrgetter
from typing import Any

from .. import flags, observer
from ..patches import replaced

MOST = 32
"""Modules, evenly spread: 500 took 180 us of each step, which is 3.6 % of one of 5 ms, and these take 40."""
EVERY = 16
"""The answers for so many steps are read together."""


@cache
def _keep_counts() -> None:
    """Have an answer of `_Answers` not be subtracted from the counts of steps."""
    import torch

    subtract: Any = torch._foreach_sub_

    @wraps(subtract)
    def _foreach_sub_(counts: Any, others: Any, **named: Any) -> Any:
        if isinstance(others, list) and getattr(others[0], "is_answer_of_gputune", False):
            return None
        return subtract(counts, others, **named)

    replaced(torch, "_foreach_sub_", _foreach_sub_)


class _Answers:
    """Whether the gradients of one optimizer's steps are finite."""

    def __init__(self, device: Any) -> None:
        import torch

        self._one = torch.ones((), device=device)
        self.found = torch.zeros_like(self._one)
        """Whether the present gradients are not finite."""
        self.found.is_answer_of_gputune = True
        self._left_out = torch.zeros_like(self._one)
        """The number of steps whose gradients were not."""
        self._asked = 0
        self._on_its_way: tuple[Any, Any] | None = None
        """A number of steps that is being copied to the host, and the event behind which it is there."""

    def ask(self, gradients: list[Any]) -> None:
        import torch

        self.found.zero_()
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, self.found, self._one)

    def has_left_out(self) -> bool:
        """Whether any step is known to have been left out, as the optimizer was told. A GPU is not waited for."""
        import torch

        if self.found.device.type != "cuda":
            if has := bool(self.found.item()):
                self._left_out.add_(1)
            return has
        self._left_out.add_(self.found)
        self._asked += 1
        if self._on_its_way is None:
            if self._asked % EVERY == 0:
                event = torch.cuda.Event()
                self._on_its_way = self._left_out.to("cpu", non_blocking=True), event
                event.record()
            return False
        number, event = self._on_its_way
        if not event.query():
            return False
        self._on_its_way = None
        return bool(number.item())

    def uncount(self, optimizer: Any) -> None:
        """Take the steps that were left out off the optimizer's own counts."""
        import torch

        counts = [state["step"] for state in optimizer.state.values() if "step" in state]
        if counts and (number := self._left_out.item()):
            torch._foreach_sub_(counts, number)


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
        self._answers: weakref.WeakKeyDictionary[Any, _Answers] = weakref.WeakKeyDictionary()
        """By optimizer."""
        self._withheld: list[tuple[Any, Any]] = []
        """Weights whose gradients are put aside while a step runs."""
        self._marked: Any = None
        """The fused optimizer that was told of an answer, for the step that runs."""
        self._is_over = False

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
        if self._is_over and (answers := self._answers.pop(optimizer, None)):
            answers.uncount(optimizer)

    def _test(self, optimizer: Any) -> None:
        tested = map(attrgetter("grad"), self._weights[self._root.model])
        gradients = [one for one in tested if one is not None and not one.is_sparse]
        if not gradients:
            return
        if (answers := self._answers.get(optimizer)) is None:
            answers = self._answers[optimizer] = _Answers(gradients[0].device)
        answers.ask(gradients)
        if all(group.get("fused") for group in optimizer.param_groups):
            _keep_counts()
            optimizer.found_inf, self._marked = answers.found, optimizer
            if answers.has_left_out():
                self._refuse()
        elif answers.found.item():
            own = [one for group in optimizer.param_groups for one in group["params"]]
            self._withheld = [(one, one.grad) for one in own]
            for one in own:
                one.grad = None
            self._refuse()

    def _refuse(self) -> None:
        self._is_over = True
        observer.leave(self, "optimizer_stepping")
        self._root.refuse(["amp_dtype"], "gradients were not finite in it, and the optimizer's step was left out")
