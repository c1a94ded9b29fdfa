"""Once, in the program itself: what a model computes with its settings, and without, from the same batch at the same
weights.

Rotary positions from 65536 on collapse in bfloat16: the loss stayed at 3.25 where it falls to 0.16, without a word.

The first call with settings is kept with its random state. Before the optimizer's next step, when the weights are still
the same, the call is made twice more, without the settings and with them, and both get the gradient that the program's
own backward pass has brought to the outputs. What differs by more than the settings' precision explains turns them off.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ... import knobs
from ...knobs import Limits
from ...knobs._outputs import changed, tensors
from ...knobs._signals import is_for_the_program
from .. import flags, observer
from ..before import Before
from ..equal_weights import batch_differences, norm_of
from ..records import Output, Recorded, gradient_of, outputs_of
from ..states import has_iterator
from ..suspects import Net
from ..unheard import unheard

OUTPUTS, PARAMETER = 0.5, 0.85
"""The shares of what a guard allows outputs, and one weight's gradient, to differ between processes in another dtype:
2.5 and 64 % in bfloat16. Thirty sound networks had 2.2 and 22 % at the most. Rotary positions that collapse made 81 %
of one weight's gradient, 73 by a sketch that errs, and in another model 3.2 % of the outputs."""
MANY, OF_FEW = 256, 2.0
"""Fewer outputs may cancel by chance: they may differ by so many times what a guard allows."""
TF32 = "matmul_precision"
FLAGS = (TF32, "cudnn_benchmark")
"""What is torch's default in these calls, unless it is compared. cuDNN's own search would take seconds for them."""
PATIENCE = 8
"""Optimizer steps that are waited for a call whose outputs get gradients."""


def limits_of(settings: Sequence[str], outputs: Sequence[Output]) -> Limits:
    """What the precision of all these settings explains of two calls in one process that return such outputs."""
    own = [getattr(knobs.load(name), "PRECISION_LIMITS", Limits()) for name in settings]
    most = Limits(**{one.name: max(getattr(each, one.name) for each in own) for one in fields(Limits)})
    if most == Limits():
        return most
    share = OUTPUTS if sum(len(one.sample) for one in outputs if not one.is_whole) >= MANY else OF_FEW
    return replace(most, outputs=share * most.outputs, parameter=PARAMETER * most.parameter)


@dataclass(kw_only=True)
class _Sample:
    """A call, and what the program's backward pass brings to its outputs."""

    inputs: Any
    named: Any
    before: Before
    gradients: list[Any] = field(default_factory=list)
    autocast: Any = None
    """The dtype of the program's own autocast around the call."""

    def watch(self, output: Any) -> None:
        outputs = list(tensors(output))
        self.gradients = [None] * len(outputs)
        for place, one in enumerate(outputs):
            if one.requires_grad and one.grad_fn is not None:
                one.register_hook(lambda gradient, place=place: self._add(place, gradient))

    def _add(self, place: int, gradient: Any) -> None:
        if gradient is not None:
            gradient = gradient.detach().clone()
            known = self.gradients[place]
            self.gradients[place] = gradient if known is None else known + gradient


class Results(observer.Follower, Net):
    """Compares the results of one model once."""

    def __init__(self, root: Any, obstacle: str | None) -> None:
        """`obstacle` is why a call of the model may not be made once more."""
        self._root, self._obstacle = root, obstacle
        self._sample: _Sample | None = None
        self._patience = PATIENCE
        self._thread = observer.here()
        observer.follow(self, "capture_begun")

    def capture_begun(self) -> None:
        self._end()
        self._root.leave_out_of_graphs()

    def called(self, one: Any, before: Before | None, output: Any) -> None:
        """Keep the first call of a step in which all settings are on."""
        import torch

        if self._obstacle:
            self._end(self._obstacle)
        elif self._sample is None and self._root.call.suspects.are_settled and observer.here() == self._thread:
            if before is not None and before.held is None:
                self._root.call.suspects.keep_everything()  # of the next call
                return
            if before is None or has_iterator(before.inputs):
                self._end(
                    "what its call changes cannot be read" if before is None else "an iterator is among its inputs"
                )
                return
            device = self._root.device
            autocast = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
            self._sample = _Sample(inputs=one.inputs, named=one.named, before=before, autocast=autocast)
            self._sample.watch(output)
            observer.follow(self, "optimizer_stepping")

    def optimizer_stepping(self, optimizer: Any) -> None:
        root, sample = self._root, self._sample
        if root.model is None or not root.call.suspects:
            self._end()
        elif sample is not None and observer.here() == self._thread and optimizer in root.optimizers:
            self._sample, self._patience = None, self._patience - 1
            if any(one is not None for one in sample.gradients):
                self._compare(sample)
            elif not self._patience:
                self._end("no gradients of its outputs were seen")

    def _end(self, why: str | None = None) -> None:
        observer.leave(self)
        if self._root.model is not None:
            nets = self._root.call.suspects.nets
            nets[:] = [one for one in nets if one is not self]
        if why:
            self._root.say(f"the results of {self._root.name} were not compared with FP32's: {why}")

    def _compare(self, sample: _Sample) -> None:
        import torch

        root = self._root
        if sample.before.weighs_otherwise():
            return self._end("its weights have changed since its call")
        if (now := sample.before.as_now()) is None:
            return self._end("a large container has another length than before its call")
        try:
            with now.undone(), unheard():
                guilty, why = self._judged(sample)
        except torch.cuda.OutOfMemoryError:
            return self._end("memory is short")
        except Exception as error:
            if is_for_the_program(error):
                raise
            return self._end(f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0][:200])
        self._end()
        if TF32 in guilty and flags.set_back(TF32, why):
            root.say(f"{TF32} turned off: {why}")
        if in_calls := [name for name in guilty if name != TF32]:
            root.refuse(in_calls, why)
        return None

    def _judged(self, sample: _Sample) -> tuple[list[str], str]:
        """The settings to turn off, and what differs."""
        suspects = self._root.call.suspects
        on = [one.name for one in suspects.on if one.name not in suspects.fixed]
        on += [TF32] if flags.is_ours(TF32, "tf32") else []
        if not on:
            return [], ""
        suspects.pause()
        try:
            plain = self._computed(sample, settings=())
            if not 0 < norm_of(plain) < math.inf:
                raise ValueError("its gradients are zero or no numbers in FP32")
            if not (why := self._differs(sample, plain, on)):
                return [], ""
            if len(on) == 1:
                return on, why
            alone = [name for name in on if name != "compile" and self._differs(sample, plain, [name])]
            return alone or [name for name in on if name == "compile"] or on, why
        finally:
            suspects.go_on()

    def _differs(self, sample: _Sample, plain: Recorded, settings: Sequence[str]) -> str | None:
        """What differs with these settings alone by more than their precision and other random numbers explain."""
        limits = limits_of(settings, plain.outputs)
        # What stands for the loss is only the usual size of its parts.
        other = replace(self._computed(sample, settings=settings), losses=plain.losses)
        if not any(batch_differences(plain, other, limits, plain, None)):
            return None
        chance = replace(self._computed(sample, settings=(), others=True), losses=plain.losses)
        return next((why for why, _ in batch_differences(plain, other, limits, plain, chance)), None)

    def _computed(self, sample: _Sample, settings: Sequence[str], *, others: bool = False) -> Recorded:
        """The call with these settings alone. With `others` it draws other random numbers. Raises what torch does."""
        import torch

        root = self._root
        sample.before.put_back()
        if others:
            for device in {torch.device("cpu"), *(one.device for one in root.inner.parameters())}:
                torch.rand(4096, device=device)
        inputs, named = changed((tuple(sample.inputs), sample.named), _detached)
        with root.call.suspects.only(settings), ExitStack() as around:
            around.enter_context(flags.without([name for name in FLAGS if name not in settings]))
            around.enter_context(torch.enable_grad())
            if sample.autocast is not None:
                around.enter_context(torch.autocast(root.device, dtype=sample.autocast))
            own = self._weights(is_plain=not settings)
            output = self._output(inputs, named, own)
            made = self._gradients(sample, output, list(own.values()))
        return Recorded(
            losses=(sum(abs(float(one.detach())) for one in tensors(output) if one.dim() == 0),),
            compared=1,
            gradients=tuple(gradient_of(one) for one in made if one is not None),
            steps=(),
            outputs=tuple(_seen(outputs_of(root.inner, output))),
        )

    def _weights(self, *, is_plain: bool) -> dict[str, Any]:
        """The weights that require gradients, by name. If they stay in channels_last although the call is plain, copies
        in torch's usual layout: cuDNN builds kernels for another, which takes seconds.
        """
        own = {name: one for name, one in self._root.inner.named_parameters() if one.requires_grad}
        if not is_plain or "channels_last" not in self._root.call.suspects.fixed:
            return own
        return {
            name: one.detach().contiguous().requires_grad_() if one.dim() == 4 else one for name, one in own.items()
        }

    def _output(self, inputs: Any, named: Any, weights: dict[str, Any]) -> Any:
        """What the model returns with these weights."""
        import torch

        root = self._root
        copies = {name: one for name, one in weights.items() if not isinstance(one, torch.nn.Parameter)}
        if not copies:
            return root.call.run(inputs, named, None if root.inner is root.model else root.inner)
        root.call.instead = root.call.run  # past the suspects
        try:
            return torch.func.functional_call(root.inner, copies, inputs, named)
        finally:
            root.call.instead = None

    def _gradients(self, sample: _Sample, output: Any, weights: list[Any]) -> list[Any]:
        """Those of the weights, None where there is none."""
        import torch

        pairs = [
            (one, gradient)
            for one, gradient in zip(tensors(output), sample.gradients, strict=True)
            if gradient is not None and one.requires_grad
        ]
        outputs, gradients = [one for one, _ in pairs], [one for _, one in pairs]
        with torch.autocast(self._root.device, enabled=False):
            return list(torch.autograd.grad(outputs, weights, gradients, allow_unused=True))


def _seen(outputs: Iterator[Output]) -> Iterator[Output]:
    """Those that can be looked into, which a cache of keys and values behind them cannot."""
    with suppress(TypeError):
        yield from outputs


def _detached(one: Any) -> Any:
    return one.detach().requires_grad_() if one.requires_grad else one
