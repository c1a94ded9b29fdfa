"""Whether a program trains with a combination of settings as it does in FP32. Pure: what runs recorded comes in.

Three runs in FP32 with other seeds show how far apart its loss is by itself; two with the settings have the seeds of
the first two. **The rule** refuses a combination

- where its loss is no number although FP32's is;
- where, at the first step with the settings, the loss or the gradients of the same batch at the same weights differ
  from FP32's by more than the precision explains: over all gradients together, for any parameter that has a
  considerable share of them, or where a parameter's gradient vanishes;
- where the optimizer's step is not the one that its plain form takes;
- where the mean loss of the last part of the run, or of any two parts, leaves the range of FP32's runs. The range is
  widened on both sides by itself, by 2 % of the loss, or by three standard errors, whichever is most.

The limits are several times what sound networks show (`LIMITS` has the figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any, Literal, Self

Precision = Literal["ieee", "tf32", "bfloat16"]
Outcome = Literal["accepted", "refused", "unknown"]

PARTS = 5
FIRST = 3
"""The first iterations, which are the same with and without the settings, are in no part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The relative differences that a precision explains."""

    loss: float
    gradients: float
    """Of all together, in the norm."""
    parameter: float
    """Of one that has a considerable share of all."""


LIMITS: dict[Precision, Limits] = {
    "ieee": Limits(loss=0.005, gradients=0.05, parameter=0.15),
    "tf32": Limits(loss=0.01, gradients=0.08, parameter=0.25),
    "bfloat16": Limits(loss=0.05, gradients=0.30, parameter=0.75),
}
"""FP32 convolutions run in TF32 by torch's default, so `ieee` allows for that."""
CONSIDERABLE, NOTICEABLE = 0.05, 0.01
"""The share of the norm of all gradients from which a parameter's own difference counts, and its vanishing."""
VANISHED = 0.05
STEP = 0.01
"""The relative difference of an optimizer's step from its plain form's; rounding makes 1e-4 at the most."""
ROUNDING = 2.0**-22
"""What storing the new values may round off, to the values themselves."""
WIDER = 0.02
AS_BY_CHANCE = 1.2
"""Gradients that differ by no more than so many times what other random numbers of dropout make of FP32's are left to
the loss."""


class Reason(Enum):
    """Why a combination was accepted, refused, or neither. The value is the sentence, with placeholders."""

    SAME = "loss within FP32's own spread"
    NO_NUMBER = "its loss is no number from step {0} on"
    FP32_NO_NUMBER = "the loss is no number in FP32 either"
    NO_LOSS = "no call of backward on a scalar was seen"
    LOSS = "the loss of one batch at equal weights is {0} instead of {1}"
    GRADIENTS = "the gradients of one batch at equal weights differ by {0} %, and the precision explains {1} %"
    PARAMETER = "the gradient of parameter {0} differs by {1} % at equal weights, and the precision explains {2} %"
    VANISHES = "the gradient of parameter {0} vanishes"
    STEP = "the optimizer's step differs from its plain form's by {0} %"
    SPREAD = "its mean loss is {0} in part {1} of {2}, and FP32's own range ends at {3}"

    def __call__(self, *arguments: object) -> Why:
        return Why(self, tuple(map(str, arguments)))


@dataclass(frozen=True, slots=True)
class Why:
    reason: Reason
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.reason.value.format(*self.arguments)


@dataclass(frozen=True, slots=True)
class Gradient:
    norm: float
    sketch: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What one run recorded."""

    losses: tuple[float | None, ...]
    compared: int
    """The number of the iteration, from 1, whose loss, gradients and steps are compared."""
    gradients: tuple[Gradient, ...]
    steps: tuple[tuple[float, float, float], ...]
    """For each parameter the norms of the difference between the real and the plain update, of the plain update, and of
    the values before it."""

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError or ValueError for what `Recorder.plain` does not make."""
        return cls(
            losses=tuple(None if one is None else float(one) for one in data["losses"]),
            compared=int(data["compared"]),
            gradients=tuple(Gradient(float(norm), tuple(map(float, image))) for norm, _, image in data["gradients"]),
            steps=tuple((float(a), float(b), float(c)) for a, b, c in data["steps"]),
        )

    @property
    def loss(self) -> float | None:
        """The loss of the compared iteration."""
        return self.losses[self.compared - 1] if len(self.losses) >= self.compared else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    outcome: Outcome
    why: Why
    fp32: tuple[tuple[float, float], ...] = ()
    """The lowest and the highest mean loss of FP32's runs, for each part."""
    tuned: tuple[float, ...] = ()
    """The mean loss with the settings, for each part: that of the run which is farther from FP32's."""


def verdict(
    fp32: Sequence[Recorded], tuned: Sequence[Recorded], precision: Precision, by_chance: Recorded | None = None
) -> Verdict:
    """Hold runs with the settings against runs in FP32, of which the first have the same seeds. `by_chance` is one more
    in FP32 with the seed of the first, in which dropout drew other numbers in the compared iteration.
    """
    if any(one.loss is None for one in (*fp32, *tuned)):
        return Verdict(outcome="unknown", why=Reason.NO_LOSS())
    if not all(math.isfinite(loss) for one in fp32 for loss in one.losses if loss is not None):
        return Verdict(outcome="unknown", why=Reason.FP32_NO_NUMBER())
    band, seen, outside = _spread(fp32, tuned)
    whys = [*_no_numbers(tuned), *_steps(tuned)]
    for plain, one in zip(fp32, tuned, strict=False):
        whys += _at_equal_weights(plain, one, LIMITS[precision], _error(plain, by_chance) if by_chance else 0.0)
    whys += outside
    if whys:
        return Verdict(outcome="refused", why=whys[0], fp32=band, tuned=seen)
    return Verdict(outcome="accepted", why=Reason.SAME(), fp32=band, tuned=seen)


def asks_for_chance(found: Verdict) -> bool:
    """Whether a run with other random numbers may show that a refusal was by chance."""
    return found.why.reason in (Reason.GRADIENTS, Reason.PARAMETER, Reason.LOSS)


def _no_numbers(tuned: Sequence[Recorded]) -> Iterator[Why]:
    for one in tuned:
        for number, loss in enumerate(one.losses, start=1):
            if loss is not None and not math.isfinite(loss):
                yield Reason.NO_NUMBER(number)
                return


def _steps(tuned: Sequence[Recorded]) -> Iterator[Why]:
    for one in tuned:
        differences = [max(0.0, a - ROUNDING * c) / b for a, b, c in one.steps if b > 0]
        worst = max(differences, default=0.0)
        if not worst <= STEP:
            yield Reason.STEP(_percent(worst))


def _at_equal_weights(plain: Recorded, tuned: Recorded, limits: Limits, chance: float) -> Iterator[Why]:
    before, after = plain.loss or 0.0, tuned.loss or 0.0
    typical = fmean(abs(loss) for loss in plain.losses if loss is not None)
    if not abs(after - before) <= limits.loss * max(abs(before), typical) and not chance:
        yield Reason.LOSS(f"{after:.4g}", f"{before:.4g}")
    if len(plain.gradients) != len(tuned.gradients):
        yield Reason.VANISHES(min(len(plain.gradients), len(tuned.gradients)))
        return
    whole, error = _norm(plain), _error(plain, tuned)
    allowed = max(limits.gradients, AS_BY_CHANCE * chance)
    if not error <= allowed:
        yield Reason.GRADIENTS(_percent(error), _percent(limits.gradients))
    for place, (old, new) in enumerate(zip(plain.gradients, tuned.gradients, strict=True)):
        if old.norm > NOTICEABLE * whole and new.norm < VANISHED * old.norm:
            yield Reason.VANISHES(place)
        own = _distance(old, new) / old.norm if old.norm else 0.0
        if old.norm > CONSIDERABLE * whole and not own <= limits.parameter and not chance:
            yield Reason.PARAMETER(place, _percent(own), _percent(limits.parameter))


def _error(plain: Recorded, other: Recorded) -> float:
    """The norm of the difference of all gradients, to that of FP32's."""
    whole = _norm(plain)
    pairs = zip(plain.gradients, other.gradients, strict=False)
    return math.sqrt(sum(_distance(old, new) ** 2 for old, new in pairs)) / whole if whole else 0.0


def _norm(one: Recorded) -> float:
    return math.sqrt(sum(gradient.norm**2 for gradient in one.gradients))


def _distance(old: Gradient, new: Gradient) -> float:
    """The norm of the difference of two gradients, estimated from their sketches."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(old.sketch, new.sketch, strict=True)))


def _spread(
    fp32: Sequence[Recorded], tuned: Sequence[Recorded]
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...], list[Why]]:
    """The range of FP32's mean losses in each part, those with the settings, and where these leave it."""
    band, seen, left = [], [], []
    for place in range(PARTS):
        plain = [_part(one, place) for one in fp32]
        own = [_part(one, place) for one in tuned]
        if not all(plain) or not all(own):
            continue
        means = [fmean(part) for part in plain]
        low, high = min(means), max(means)
        error = max((stdev(part) / math.sqrt(len(part)) for part in plain if len(part) > 1), default=0.0)
        margin = max(high - low, WIDER * max(map(abs, means)), 3 * error)
        worst = max((fmean(part) for part in own), key=lambda one: max(one - high, low - one))
        band.append((low, high))
        seen.append(worst)
        if not low - margin <= worst <= high + margin:
            edge = high + margin if worst > high else low - margin
            left.append((place, Reason.SPREAD(f"{worst:.4g}", place + 1, PARTS, f"{edge:.4g}")))
    counts = len(left) > 1 or any(place == PARTS - 1 for place, _ in left)
    return tuple(band), tuple(seen), [why for _, why in left] if counts else []


def _part(one: Recorded, place: int) -> list[float]:
    """The losses of one part of a run."""
    losses = one.losses[FIRST:]
    edges = list(pairwise(len(losses) * part // PARTS for part in range(PARTS + 1)))
    return [loss for loss in losses[slice(*edges[place])] if loss is not None]


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"
