"""A step whose gradients are not finite in mixed precision is left out, and mixed precision goes off.

The gradients are tested on their device, as torch's GradScaler tests them, and a fused optimizer leaves the step out by
itself: nothing waits for the device. Of another optimizer's step the answer is waited for, as GradScaler does. In FP32
gradients that are not finite are the program's own.

One gradient of each module is tested, the smallest, and of at most `MOST` modules. bfloat16 has FP32's range, so what
it makes infinite is an activation or the gradient of one, which reaches all weights of a module and those before it.

torch's fused Adam has counted a step by the time that it leaves it out, and takes the answer off each parameter's
count, in every step: 150 us for 370 parameters on a CPU. Here the few steps that are left out stay counted.
"""

import math
import weakref
from collections import deque
from functools import cache, wraps
from operator import attrgetter
from typing import Any

from .. import flags, observer
from ..patches import GPUTUNE, replaced

MOST = 16
"""Modules, evenly spread: of 500 all took 180 us of each step on a CPU, and these take 20."""
EVERY = 16
"""The answers for so many steps are read together."""
_GRADIENT = attrgetter("grad")


@cache
def _keep_counts() -> None:
    """Have an answer of `_Answers` not be subtracted from the counts of steps."""
    import torch

    subtract: Any = torch._foreach_sub_

    @wraps(subtract)
    def _foreach_sub_(counts: Any, others: Any, **named: Any) -> Any:
        if isinstance(others, list) and others and getattr(others[0], "is_answer_of_gputune", False):
            return None
        return subtract(counts, others, **named)

    replaced(torch, "_foreach_sub_", _foreach_sub_)


class _Answers:
    """Whether the gradients of one optimizer's steps are finite. On a GPU a step costs a single kernel."""

    def __init__(self, weights: list[Any]) -> None:
        """`weights` are those whose gradients are tested."""
        self._weights = weights
        self._one: Any = None
        self._block: Any = None
        """Zeros for the answers to `EVERY` steps."""
        self._unused: list[Any] = []
        """Those of its elements that are no answers yet."""
        self._on_their_way: deque[tuple[Any, Any]] = deque()
        """Blocks that are being copied to the host, and the events behind which they are there."""

    def ask(self) -> Any:
        """The answer, which is 0 where all are finite; None if there are no gradients."""
        import torch

        gradients = [one for one in map(_GRADIENT, self._weights) if one is not None and not one.is_sparse]
        if not gradients:
            return None
        if not self._unused:
            self._one = torch.ones((), device=gradients[0].device)
            self._block = torch.zeros(EVERY, device=self._one.device)
            self._unused = list(self._block.unbind())
        found = self._unused.pop()
        found.is_answer_of_gputune = True
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, self._one)
        return found

    def is_known(self, found: Any) -> bool:
        """Whether any answer is known not to be 0, of which `found` is the latest. A GPU is not waited for."""
        import torch

        if not found.is_cuda:
            return bool(found.item())
        if not self._unused:
            event = torch.cuda.Event()
            self._on_their_way.append((self._block.to("cpu", non_blocking=True), event))
            event.record()
        if self._on_their_way and self._on_their_way[0][1].query():
            return bool(self._on_their_way.popleft()[0].any())
        return False


def _tested(model: Any) -> list[Any]:
    """The weights whose gradients are tested."""
    found = []
    for module in model.modules():
        if own := [one for one in module._parameters.values() if one is not None and one.requires_grad]:
            found.append(min(own, key=lambda one: one.numel()))
    return found[:: math.ceil(len(found) / MOST) or 1]


def _hooks_of_programs(optimizer: Any) -> bool:
    from torch.optim import optimizer as of_all

    hooks = (*of_all._global_optimizer_pre_hooks.values(), *optimizer._optimizer_step_pre_hooks.values())
    return any(not str(getattr(one, "__module__", "")).startswith(GPUTUNE) for one in hooks)


class NotFinite(observer.Follower):
    """Tests the gradients of one model before each step of its optimizers, while mixed precision is on."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._answers: weakref.WeakKeyDictionary[Any, _Answers] = weakref.WeakKeyDictionary()
        """By optimizer, which keeps the weights."""
        self._withheld: list[tuple[Any, Any]] = []
        """Weights whose gradients are put aside while a step runs."""
        self._marked: Any = None
        """The fused optimizer that was told of an answer, for the step that runs."""

    def optimizer_stepping(self, optimizer: Any) -> None:
        root = self._root
        if root.model is None:
            observer.leave(self)
        elif root.call.dtype is not None and self._is_free(optimizer):
            try:
                if (answers := self._answers.get(optimizer)) is None and optimizer in root.optimizers:
                    answers = self._answers[optimizer] = _Answers(_tested(root.model))
                if answers is not None:
                    self._test(optimizer, answers)
            except RuntimeError as error:
                observer.leave(self)
                root.say(f"{root.name}'s gradients are not tested: {flags.error_text(error)}")

    def _is_free(self, optimizer: Any) -> bool:
        """Whether no scaler of the program's tells it of an answer, and no hook may yet change gradients. An answer of
        its own stays behind if a step raises.
        """
        import torch

        if self._root.device == "cuda" and torch.cuda.is_current_stream_capturing():
            return False  # a graph has no answer to read
        is_told = self._marked is not optimizer and hasattr(optimizer, "found_inf")
        return not (is_told or _hooks_of_programs(optimizer))

    def optimizer_stepped(self, optimizer: Any) -> None:
        if self._marked is optimizer:
            self._marked = None
            vars(optimizer).pop("found_inf", None)
        for weight, gradient in self._withheld:
            weight.grad = gradient
        self._withheld.clear()

    def _test(self, optimizer: Any, answers: _Answers) -> None:
        found = answers.ask()
        if found is None:
            return
        if all(group.get("fused") for group in optimizer.param_groups):
            _keep_counts()
            optimizer.found_inf, self._marked = found, optimizer
            if answers.is_known(found):
                self._refuse()
        elif found.item():
            own = [one for group in optimizer.param_groups for one in group["params"]]
            self._withheld = [(one, one.grad) for one in own]
            for one in own:
                one.grad = None
            self._refuse()

    def _refuse(self) -> None:
        observer.leave(self, "optimizer_stepping")
        self._root.refuse(["amp_dtype"], "gradients were not finite in it, and the optimizer's step was left out")
