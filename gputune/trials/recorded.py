"""Whether loss and gradients of one batch at equal weights differ by no more than a precision explains. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

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


Precision = Literal["ieee", "tf32", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The relative differences that a precision explains."""

    loss: float
    gradients: float
    """The difference of all gradients together, in the norm."""
    along: float
    """The difference of the gradients' part in the direction of FP32's: rounding errors point anywhere, a wrong factor
    does not."""
    parameter: float
    """The difference of one parameter's gradient, where it has a considerable share of all."""


LIMITS: dict[Precision, Limits] = {
    "ieee": Limits(loss=0.005, gradients=0.05, along=0.01, parameter=0.15),
    "tf32": Limits(loss=0.01, gradients=0.08, along=0.02, parameter=0.25),
    "bfloat16": Limits(loss=0.02, gradients=0.50, along=0.10, parameter=0.75),
}
"""FP32 convolutions run in TF32 by torch's default, so `ieee` allows for that. In bfloat16 the sound programs of
tests/trials/guard_cases.py show 0.0013, 0.10, 0.012 and 0.17 at the most, where there is no dropout; a ResNet-18 with a
batch of four, in which each layer's normalisation adds to the error, showed 0.33 of all gradients together."""
CONSIDERABLE, NOTICEABLE = 0.05, 0.01
"""The share of the norm of all gradients from which a parameter's own difference counts, and its vanishing."""
VANISHED = 0.05
AS_BY_CHANCE = 2.0
"""Gradients that differ by no more than so many times what other random numbers of dropout make of FP32's are left to
the loss. One draw tells that of others within a factor of 1.7 where the network and the batch are small."""


class Allowed:
    """The differences that are accepted: those that the precision explains, or those that other random numbers of
    dropout make in FP32 itself.
    """

    def __init__(self, limits: Limits, plain: Recorded, by_chance: Recorded | None) -> None:
        self.limits = limits
        self.gradients, self.loss = limits.gradients, limits.loss
        chance = error_of(plain, by_chance) if by_chance else 0.0
        self.by_chance = chance > limits.along
        """Whether FP32's gradients themselves are another each time, beyond what a GPU's order of additions makes."""
        if self.by_chance:
            self.gradients = max(limits.gradients, AS_BY_CHANCE * chance)
            self.loss = max(limits.loss, chance)


def differences(plain: Recorded, tuned: Recorded, allowed: Allowed) -> Iterator[tuple[str, bool]]:
    """What differs by more than is allowed, and whether other random numbers of dropout may be the cause."""
    before, after = plain.loss or 0.0, tuned.loss or 0.0
    if not abs(after - before) <= allowed.loss * max(abs(before), typical(plain)):
        yield f"the loss of one batch at equal weights is {after:.4g} instead of {before:.4g}", True
    if len(plain.gradients) != len(tuned.gradients):
        yield (
            f"{len(tuned.gradients)} parameters have gradients at equal weights instead of {len(plain.gradients)}",
            False,
        )
        return
    error = error_of(plain, tuned)
    if not error <= allowed.gradients:
        differs = f"differ by {percent(error)} %, and the precision explains {percent(allowed.limits.gradients)} %"
        yield f"the gradients of one batch at equal weights {differs}", True
    along = along_of(plain, tuned, error)
    if not abs(along - 1) <= allowed.limits.along and not allowed.by_chance:
        yield f"the gradients of one batch at equal weights are {along:.4g} times FP32's", True
    yield from _of_parameters(plain, tuned, allowed)


def _of_parameters(plain: Recorded, tuned: Recorded, allowed: Allowed) -> Iterator[tuple[str, bool]]:
    whole, limit = norm_of(plain), allowed.limits.parameter
    for place, (old, new) in enumerate(zip(plain.gradients, tuned.gradients, strict=True)):
        if old.norm > NOTICEABLE * whole and not new.norm >= VANISHED * old.norm:
            yield f"the gradient of parameter {place} vanishes", False
        own = distance(old, new) / old.norm if old.norm else 0.0
        if old.norm > CONSIDERABLE * whole and not own <= limit and not allowed.by_chance:
            explained = f"the precision explains {percent(limit)} %"
            yield (
                f"the gradient of parameter {place} differs by {percent(own)} % at equal weights, and {explained}",
                True,
            )


def percent(share: float) -> str:
    return f"{100 * share:.3g}"
