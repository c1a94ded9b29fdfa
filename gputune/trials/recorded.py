"""Whether loss and gradients of one batch at equal weights differ by no more than a precision explains. Pure."""

import math
from collections.abc import Iterator
from statistics import fmean

from gputune.knobs import Limits
from gputune.live.orders import Gradient, Recorded


def typical(one: Recorded) -> float:
    """The mean size of a run's losses."""
    return fmean(abs(loss) for loss in one.losses if loss is not None)


def error_of(plain: Recorded, other: Recorded) -> float:
    """The norm of the difference of all gradients, to that of FP32's."""
    whole = norm_of(plain)
    pairs = zip(plain.gradients, other.gradients, strict=False)
    return math.sqrt(sum(distance(old, new) ** 2 for old, new in pairs)) / whole if whole else 0.0


def along_of(plain: Recorded, other: Recorded, error: float) -> float:
    """The part of the gradients along FP32's, to these: from the lengths of all three sides of the triangle."""
    ratio = norm_of(other) / norm_of(plain)
    return (1 + ratio**2 - error**2) / 2


def norm_of(one: Recorded) -> float:
    return math.sqrt(sum(gradient.norm**2 for gradient in one.gradients))


def distance(old: Gradient, new: Gradient) -> float:
    """The norm of the difference of two gradients, estimated from their sketches."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(old.sketch, new.sketch, strict=True)))


CONSIDERABLE, NOTICEABLE = 0.05, 0.01
"""The share of the norm of all gradients from which a parameter's own difference counts, and its vanishing."""
VANISHED = 0.05
AS_BY_CHANCE = 2.0
"""Gradients that differ by no more than so many times what other random numbers of dropout make of FP32's are left to
the loss. One draw tells that of others within a factor of 1.7 where the network and the batch are small."""


def allowed(limits: Limits, plain: Recorded, by_chance: Recorded | None) -> Limits:
    """The differences that the precision explains, or more if other random numbers of dropout make FP32's own gradients
    differ by more than a GPU's order of additions does. One parameter then tells nothing, nor does a direction.
    """
    chance = error_of(plain, by_chance) if by_chance else 0.0
    if not chance > limits.along:
        return limits
    gradients = max(limits.gradients, AS_BY_CHANCE * chance)
    return Limits(loss=max(limits.loss, chance), gradients=gradients, along=math.inf, parameter=math.inf)


def differences(plain: Recorded, tuned: Recorded, limits: Limits) -> Iterator[tuple[str, bool]]:
    """What differs by more than is allowed, and whether other random numbers of dropout may be the cause."""
    before, after = plain.loss or 0.0, tuned.loss or 0.0
    if not abs(after - before) <= limits.loss * max(abs(before), typical(plain)):
        yield f"the loss of one batch at equal weights is {after:.4g} instead of {before:.4g}", True
    if len(plain.gradients) != len(tuned.gradients):
        counts = f"{len(tuned.gradients)} parameters have gradients at equal weights instead of {len(plain.gradients)}"
        yield counts, False
        return
    error = error_of(plain, tuned)
    if not error <= limits.gradients:
        differs = f"differ by {percent(error)} % instead of at most {percent(limits.gradients)} %"
        yield f"the gradients of one batch at equal weights {differs}", True
    along = along_of(plain, tuned, error)
    if not abs(along - 1) <= limits.along:
        yield f"the gradients of one batch at equal weights are {along:.4g} times FP32's", True
    yield from _of_parameters(plain, tuned, limits.parameter)


def _of_parameters(plain: Recorded, tuned: Recorded, limit: float) -> Iterator[tuple[str, bool]]:
    whole = norm_of(plain)
    for place, (old, new) in enumerate(zip(plain.gradients, tuned.gradients, strict=True)):
        if old.norm > NOTICEABLE * whole and not new.norm >= VANISHED * old.norm:
            yield f"the gradient of parameter {place} vanishes", False
        own = distance(old, new) / old.norm if old.norm else 0.0
        if old.norm > CONSIDERABLE * whole and not own <= limit:
            differs = f"differs by {percent(own)} % at equal weights instead of at most {percent(limit)} %"
            yield f"the gradient of parameter {place} {differs}", True


def percent(share: float) -> str:
    return f"{100 * share:.3g}"
