"""Once, in the program itself: what a model computes with its settings, and without, from the same batch at the same
weights.

Rotary positions from 65536 on collapse in bfloat16: the loss stayed at 3.25 where it falls to 0.16, without a word.

The first call with settings is kept with its random state. Before the optimizer's next step, when the weights are still
the same, the call is made twice more, without the settings and with them, and both get the gradient that the program's
own backward pass has brought to the outputs. What differs by more than the settings' precision explains turns them off.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from itertools import starmap
from typing import Any

from ... import knobs
from ...knobs import Limits
from ...knobs._outputs import changed, tensors
from ...knobs._signals import is_for_the_program
from .. import flags, observer
from ..states import Before, States
from ..tuning.agreement import compared, rows
from .backward import unheard

PATIENCE = 8
"""Optimizer steps that are waited for a call whose outputs get gradients."""
AGREEING_LABELS = 0.95
"""The share of whole numbers that must be the same."""
AS_BY_CHANCE = 1.5
"""What differs by no more than so many times what other random numbers make of it is by chance."""
CONSIDERABLE = 0.05
"""The share of the norm of all gradients from which a parameter's own difference counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What a call computes."""

    outputs: list[Any]
    gradients: list[Any]
    """The gradient of each weight; None where there is none."""


Differences = dict[str, tuple[float, float]]
"""By what differs, the relative difference and the one that is explained."""


def measured(plain: Computed, other: Computed, limits: Limits) -> Differences:
    return {**dict(_of_outputs(plain, other, limits)), **dict(_of_gradients(plain, other, limits))}


def beyond(found: Differences, by_chance: Differences | None = None) -> Differences:
    """What differs by more than is explained, and than what other random numbers make of the plain call."""
    chance = {what: AS_BY_CHANCE * error for what, (error, _) in (by_chance or {}).items()}
    return {what: (error, most) for what, (error, most) in found.items() if not error <= max(most, chance.get(what, 0))}


def _of_outputs(plain: Computed, other: Computed, limits: Limits) -> Iterator[tuple[str, tuple[float, float]]]:
    for place, (one, two) in enumerate(zip(plain.outputs, other.outputs, strict=True)):
        what = "its output differs" if len(plain.outputs) == 1 else f"output {place} differs"
        if one.shape != two.shape:
            yield f"{what} in shape", (1.0, 0.0)
            continue
        found = compared(one, two, limits.outputs)
        yield what, (found.error if found.finite else float("inf"), limits.outputs)
        if found.labels:
            others = 1 - found.same_labels / found.labels
            yield f"the whole numbers of output {place} differ", (others, 1 - AGREEING_LABELS)


def _of_gradients(plain: Computed, other: Computed, limits: Limits) -> Iterator[tuple[str, tuple[float, float]]]:
    pairs = list(zip(plain.gradients, other.gradients, strict=True))
    if any((one is None) != (two is None) for one, two in pairs):
        yield "other weights get gradients", (1.0, 0.0)
        return
    both = [(_flat(one), _flat(two)) for one, two in pairs if one is not None]
    norms = [float(one.norm()) for one, _ in both]
    errors = [float((one - two).norm()) for one, two in both]
    whole = sum(norm**2 for norm in norms) ** 0.5
    if not 0 < whole < float("inf"):
        return
    yield "its gradients differ", (sum(error**2 for error in errors) ** 0.5 / whole, limits.gradients)
    along = sum(float(one @ two) for one, two in both) / whole**2
    yield "its gradients are larger or smaller", (abs(along - 1), limits.along)
    shares = [error / norm for norm, error in zip(norms, errors, strict=True) if norm > CONSIDERABLE * whole]
    yield "the gradient of a weight differs", (max(shares, default=0.0), limits.parameter)


def _flat(gradient: Any) -> Any:
    import torch

    gradient = gradient.to_dense() if gradient.layout != torch.strided else gradient
    gradient = torch.view_as_real(gradient) if gradient.is_complex() else gradient
    return gradient.detach().float().reshape(-1)


def limits_of(settings: Sequence[str]) -> Limits:
    """What the precision of all these settings explains."""
    own = [getattr(knobs.load(name), "PRECISION_LIMITS", Limits()) for name in settings]
    return Limits(**{one.name: max(getattr(each, one.name) for each in own) for one in fields(Limits)})


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


class Results(observer.Follower):
    """Compares the results of one model once."""

    def __init__(self, root: Any, obstacle: str | None) -> None:
        """`obstacle` is why a call of the model may not be made once more."""
        self._root, self._obstacle = root, obstacle
        self._sample: _Sample | None = None
        self._patience = PATIENCE
        self._thread = observer.here()

    def called(self, one: Any, before: Before | None, output: Any) -> None:
        """Keep the first call of a step in which all settings are on."""
        import torch

        if self._obstacle:
            self._end(self._obstacle)
        elif self._sample is None and self._root.call.suspects.are_settled and observer.here() == self._thread:
            if before is None or before.held is None:
                self._root.call.suspects.keep_everything()  # of the next call
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
        now = States(lambda: root.model, root.device).before_call((*sample.inputs, *sample.named.values()))
        if now is None or sample.before.weighs_otherwise():
            return self._end("its weights have changed since its call")
        refused: Differences = {}
        try:
            with unheard():
                guilty, refused = self._judged(sample)
        except torch.cuda.OutOfMemoryError:
            return self._end("memory is short")
        except Exception as error:
            if is_for_the_program(error):
                raise
            return self._end(f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0][:200])
        finally:
            now.put_back()
        self._end()
        if guilty:
            root.refuse(guilty, "; ".join(starmap(_words, refused.items())))
        return None

    def _judged(self, sample: _Sample) -> tuple[list[str], Differences]:
        """The settings to turn off, and what differs."""
        suspects = self._root.call.suspects
        on = [one.name for one in suspects.on if one.name not in suspects.fixed]
        suspects.pause()
        try:
            plain = self._computed(sample, settings=())
            found = self._beyond(sample, plain, on)
            if not found:
                return [], found
            alone = [name for name in on if name != "compile" and self._beyond(sample, plain, [name])]
            return alone or [name for name in on if name == "compile"] or on, found
        finally:
            suspects.go_on()

    def _beyond(self, sample: _Sample, plain: Computed, settings: Sequence[str]) -> Differences:
        limits = limits_of(settings)
        found = measured(plain, self._computed(sample, settings=settings), limits)
        if not beyond(found):
            return {}
        return beyond(found, measured(plain, self._computed(sample, settings=(), others=True), limits))

    def _computed(self, sample: _Sample, settings: Sequence[str], *, others: bool = False) -> Computed:
        """The call with these settings alone. With `others` it draws other random numbers. Raises what torch does."""
        import torch

        root = self._root
        sample.before.put_back()
        if others:
            for device in {torch.device("cpu"), *(one.device for one in root.inner.parameters())}:
                torch.rand(4096, device=device)
        weights = [one for one in root.inner.parameters() if one.requires_grad]
        inputs, named = changed((tuple(sample.inputs), sample.named), _detached)
        with root.call.suspects.only(settings), _full_precision(not settings), ExitStack() as around:
            around.enter_context(torch.enable_grad())
            if sample.autocast is not None:
                around.enter_context(torch.autocast(root.device, dtype=sample.autocast))
            found = list(tensors(root.call.run(inputs, named, None if root.inner is root.model else root.inner)))
        pairs = [
            (one, gradient)
            for one, gradient in zip(found, sample.gradients, strict=True)
            if gradient is not None and one.requires_grad
        ]
        outputs, gradients = [one for one, _ in pairs], [one for _, one in pairs]
        with _full_precision(not settings):
            made = torch.autograd.grad(outputs, weights, gradients, allow_unused=True)
        return Computed(outputs=[rows(one) for one in found], gradients=list(made))


def _words(what: str, pair: tuple[float, float]) -> str:
    error, most = pair
    return f"{what} by {100 * error:.3g} % from FP32's at equal weights, and {100 * most:.3g} % is explained"


def _detached(one: Any) -> Any:
    return one.detach().requires_grad_() if one.requires_grad else one


@contextmanager
def _full_precision(asked: bool) -> Iterator[None]:
    """Matmuls in FP32, if it was gputune that had them in TF32."""
    asked = asked and flags.is_ours("matmul_precision", "tf32")
    knob = knobs.load("matmul_precision")
    if asked:
        knob.apply("ieee")
    try:
        yield
    finally:
        if asked:
            knob.apply("tf32")
