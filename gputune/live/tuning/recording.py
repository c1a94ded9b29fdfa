"""A guard run records the loss of every iteration, and at one of them the models' outputs, the gradients and the
optimizer's step.

Runs of equal seeds are compared at the first iteration in which all optimizers have stepped twice before: settings are
turned on after the second step, so by then they are in force, and weights, batch and random state are still the same.
"""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ...knobs.fused_optimizer import KINDS, OPTIONS
from .. import observer
from ..orders import Done, Passed, Record
from ..patches import Function, Undo, noted, together
from ..records import Gradient, Output, Recorded, gradient_of, outputs_of
from .run import Run

COMPARED = 3
"""The iteration that is compared where one optimizer steps in each. A GAN's, whose two are told apart only when the
second one has stepped, is the next one."""
PATIENCE = 8
"""After so many iterations an optimizer that has not stepped twice is waited for no longer."""
STEP = "the optimizer's step"
MOST_OUTPUTS = 64
"""So many outputs are recorded, which take 0.7 MB. A program may call each of a thousand layers by itself."""
SLICE, MOST = 1 << 16, 1 << 22
"""So many elements of each parameter are looked at, and of all together: a copy of them, and of what belongs to them,
takes 80 MB at the most."""


class Calls(observer.Follower):
    """Hears of the models' calls, with gradients or without."""

    finds_thread = True

    def __init__(self, called: Callable[[Any, Any], None], *, gradients: bool) -> None:
        self.gradients, self._called = gradients, called

    def model_called(self, model: Any, inputs: Any, output: Any) -> None:
        self._called(model, output)


class Recorder(observer.Follower):
    """Nothing is drawn from the program's random state, and nothing that fails in here reaches the program.

    An iteration with several backward calls, as with accumulated gradients, has the mean of their losses.
    `torch.autograd.grad` is not seen, nor is a backward call on anything but a scalar.
    """

    def __init__(self, compared: int = COMPARED) -> None:
        self._steps_before = compared - 1
        self._compared = compared
        self._number = 1
        self._losses: list[Any] = []
        """The loss of each iteration; None where no loss was seen."""
        self._now: list[Any] = []
        """The losses of this iteration so far."""
        self._gradients: list[Gradient] = []
        self._steps: list[tuple[float, float, float]] = []
        self._outputs: list[Output] = []
        self._evaluates = False
        self._calls = [Calls(self._called, gradients=True), Calls(self._evaluated, gradients=False)]
        self._unchecked: dict[str, None] = {}
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._shadow: Shadow | None = None
        self._depth = 0

    def start(self) -> None:
        observer.follow(self)
        self._follow_calls()

    @property
    def is_compared(self) -> bool:
        return self._number == self._compared

    def iteration_ended(self) -> None:
        import torch

        self._number += 1
        self._depth = 0
        self._losses.append(torch.stack(self._now).mean() if self._now else None)
        self._now = []
        waits = min(self._counts.values(), default=0) < self._steps_before
        if self.is_compared and waits and self._number < PATIENCE:
            self._compared += 1
        self._follow_calls()

    def _follow_calls(self) -> None:
        """In the compared iteration, and then until an evaluation was seen: a wrapped call is no usual one."""
        for one in self._calls:
            if self.is_compared:
                observer.follow(one)
            elif one.gradients or self._evaluates:
                observer.leave(one)

    def recorded(self) -> Recorded:
        return Recorded(
            losses=tuple(None if one is None else float(one) for one in self._losses),
            compared=self._compared,
            gradients=tuple(self._gradients),
            steps=tuple(self._steps),
            outputs=tuple(self._outputs),
            evaluates=self._evaluates,
            unchecked=tuple(self._unchecked),
        )

    def _called(self, model: Any, output: Any) -> None:
        if not self.is_compared:
            return
        name = f"an output of {type(model).__name__}"
        if len(self._outputs) < MOST_OUTPUTS:
            self._attempt(name, lambda: self._outputs.extend(outputs_of(model, output)))
        else:
            self._leave_out(name, f"it comes after {MOST_OUTPUTS} others")

    def _evaluated(self, model: Any, output: Any) -> None:
        self._evaluates = True
        self._called(model, output)

    def backward_begun(self, losses: list[Any]) -> None:
        import torch

        for one in losses:
            if isinstance(one, torch.Tensor) and one.numel() == 1:
                value = one.detach().float().reshape(()).clone()
                # Losses on several devices have their mean on the first one's.
                self._now.append(value.to(self._now[0].device, non_blocking=True) if self._now else value)

    def optimizer_stepping(self, optimizer: Any) -> None:
        self._depth += 1
        if self._depth > 1:  # a subclass's step that calls its parent's
            return
        self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        if self.is_compared:
            self._attempt("a gradient", lambda: self._record_gradients(optimizer))
            self._attempt(STEP, lambda: self._shadow_step(optimizer))

    def optimizer_stepped(self, optimizer: Any) -> None:
        self._depth = max(0, self._depth - 1)
        shadow = self._shadow
        if self._depth == 0 and shadow is not None:
            self._shadow = None
            self._attempt(STEP, lambda: self._steps.extend(shadow.compare()))

    def _record_gradients(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            self._gradients += [gradient_of(one.grad) for one in group["params"] if one.grad is not None]

    def _shadow_step(self, optimizer: Any) -> None:
        if why := Shadow.obstacle(optimizer):
            self._leave_out(STEP, why)
        else:
            self._shadow = Shadow(optimizer)

    def _attempt(self, what: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._leave_out(what, " ".join(f"{type(error).__name__}: {error}".split())[:200])

    def _leave_out(self, what: str, why: str) -> None:
        self._unchecked[f"{what} was not compared ({why})"] = None


class Shadow:
    """Made before a step of an optimizer; `compare` after it. Raises whatever torch does where it cannot be made."""

    def __init__(self, optimizer: Any) -> None:
        import torch

        count = sum(len(group["params"]) for group in optimizer.param_groups)
        self._slice = min(SLICE, max(1, MOST // max(1, count)))
        self._pairs: list[tuple[Any, Any, Any]] = []
        groups = []
        states: list[tuple[Any, dict[str, Any]]] = []
        for group in optimizer.param_groups:
            own = []
            for parameter in group["params"]:
                if parameter.grad is None or parameter.grad.layout != torch.strided:
                    continue
                part = torch.nn.Parameter(self._part(parameter).clone())
                part.grad = self._part(parameter.grad).clone()
                self._pairs.append((parameter, part, part.detach().clone()))
                own.append(part)
                states.append((part, self._state(optimizer.state.get(parameter, {}), parameter)))
            if own:
                given = {name: value for name, value in group.items() if name != "params" and name not in OPTIONS}
                groups.append({**given, "params": own})
        if not groups:
            return
        kind: Any = type(optimizer)
        plain = kind(groups, lr=groups[0]["lr"], foreach=False)
        plain.state.update(states)
        step = kind.step
        # Without the hooks on every optimizer's step: this one is none of the program's.
        (step.__wrapped__ if getattr(step, "hooked", False) else step)(plain)

    @staticmethod
    def obstacle(optimizer: Any) -> str | None:
        """Why the plain form of the optimizer's step is not known here; None where it is."""
        import torch

        kind = type(optimizer)
        if kind not in [getattr(torch.optim, name) for name in KINDS]:
            return kind.__name__
        return "a loss scaler is part of the step" if getattr(optimizer, "grad_scale", None) is not None else None

    def compare(self) -> list[tuple[float, float, float]]:
        """For each parameter: the norm of the difference, that of the plain update, and that of the values before."""
        found = []
        for parameter, part, before in self._pairs:
            real, plain = self._part(parameter) - before, part.detach() - before
            found.append((float((real - plain).norm()), float(plain.norm()), float(before.norm())))
        return found

    def _part(self, tensor: Any) -> Any:
        return tensor.detach().reshape(-1)[: self._slice]

    def _state(self, state: dict[str, Any], parameter: Any) -> dict[str, Any]:
        import torch

        copied: dict[str, Any] = {}
        for name, value in state.items():
            if name == "step":
                copied[name] = torch.as_tensor(value, dtype=torch.float32).detach().cpu().clone()
            elif isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                copied[name] = self._part(value).clone()
            else:
                copied[name] = value
        return copied


def work(run: Run) -> Iterator[int]:
    """Record as many iterations as are ordered."""
    from torch._inductor import config

    config.fallback_random = True  # so that compiled code draws the random numbers that it draws uncompiled
    recorder = Recorder()
    recorder.start()
    if run.assignment.other_numbers:
        dropout(lambda: recorder.is_compared)
    yield 1
    recorder.iteration_ended()
    run.send(Done())
    order = run.receive()
    assert isinstance(order, Record)
    for _ in range(order.steps - 1):
        yield 1
        recorder.iteration_ended()
        run.send(Passed())
    run.send(recorder.recorded())
    while True:
        run.receive()


def dropout(draws: Callable[[], bool]) -> Undo:
    """Have dropout draw other random numbers whenever `draws` says so: torch has no seed for dropout alone."""
    import torch

    def before(rate: Callable[..., float]) -> Function:
        def note(*inputs: Any, **named: Any) -> None:
            if draws() and not torch.compiler.is_compiling() and rate(*inputs, **named):
                torch.rand(4096, device=inputs[0].device if inputs else None)

        return note

    of_layers = before(lambda tensor=None, p=0.5, training=True, *_, **__: p if training else 0.0)
    of_attention = before(lambda q=None, k=None, v=None, mask=None, dropout_p=0.0, *_, **__: dropout_p)
    names = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
    undoing = [noted(torch.nn.functional, name, of_layers) for name in names]
    return together([*undoing, noted(torch.nn.functional, "scaled_dot_product_attention", of_attention)])
