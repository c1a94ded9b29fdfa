"""Whether a program trains with a combination of settings as it does in FP32. Pure: what runs recorded comes in.

Three runs in FP32 with other seeds show how far apart its loss is by itself; two with the settings have the seeds of
the first two. **The rule** refuses a combination

- where its loss is no number although FP32's is;
- where the optimizer's step is not the one that its plain form takes;
- where, at the first step with the settings, the loss or the gradients of the same batch at the same weights differ
  from FP32's by more than the precision explains: over all gradients together, in their size along FP32's, for any
  parameter that has a considerable share of them, or where a parameter's gradient vanishes;
- where the mean loss of the last part of the run, or of any two parts, leaves the range of FP32's runs. The range is
  widened on both sides by itself, by 2 % of the loss, by three standard errors, or by 1e-4 of what the loss began
  with, whichever is most; upwards also by as many times as its ends lie apart, up to three, since a loss that falls
  by orders of magnitude differs from seed to seed by factors.

Nothing is known, and nothing is accepted, where FP32 shows no loss, no gradient or no number, or where two runs of the
same seed differ before anything was put in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from statistics import fmean, stdev
from typing import Literal

from gputune.trials.recorded import Recorded, along_of, distance, error_of, norm_of, typical

__all__ = [
    "LIMITS", "PARTS", "Limits", "Outcome", "Precision", "Reason", "Recorded", "Verdict", "Why", "asks_for_chance",
    "verdict",
]  # fmt: skip

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
    along: float
    """Of their part in the direction of FP32's: rounding errors point anywhere, a wrong factor does not."""
    parameter: float
    """Of one that has a considerable share of all."""


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
STEP = 0.0005
"""The relative difference of an optimizer's step from its plain form's, beside what storing it rounds off; arithmetic
makes 1e-4 at the most. AdamW without its weight decay of 0.01 differs by 0.002."""
ROUNDING = 2.0**-22
"""What storing the new values may round off, to the values themselves."""
WIDER = 0.02
MOST_TIMES = 3.0
"""A small residual network fell to 0.004 to 0.013 of 1.4, by the seed, and in bfloat16 to 0.022 with two of eight."""
FLOOR = 1e-4
"""The share of its first loss below which nobody looks at a program's loss."""
ALIKE = 0.005
"""The relative difference of losses before anything was put in, from which on runs are not repetitions."""
AS_BY_CHANCE = 2.0
"""Gradients that differ by no more than so many times what other random numbers of dropout make of FP32's are left to
the loss. One draw tells that of others within a factor of 1.7 where the network and the batch are small."""


class Reason(Enum):
    """Why a combination was accepted, refused, or neither. The value is the sentence, with placeholders."""

    SAME = "loss within FP32's own spread"
    NO_NUMBER = "its loss is no number from step {0} on"
    FP32_NO_NUMBER = "the loss is no number in FP32 either"
    FP32_NO_GRADIENT = "in FP32 no gradients that are numbers were seen at step {0}"
    NO_LOSS = "no call of backward on a scalar was seen"
    NOT_ALIKE = "two runs from one seed differ before anything is put in: the loss of step {0} is {1}, and {2}"
    LOSS = "the loss of one batch at equal weights is {0} instead of {1}"
    GRADIENTS = "the gradients of one batch at equal weights differ by {0} %, and the precision explains {1} %"
    ALONG = "the gradients of one batch at equal weights are {0} times FP32's"
    PARAMETER = "the gradient of parameter {0} differs by {1} % at equal weights, and the precision explains {2} %"
    VANISHES = "the gradient of parameter {0} vanishes"
    MISSING = "{0} parameters have gradients at equal weights instead of {1}"
    STEP = "the optimizer's step differs from its plain form's by {0} %"
    SPREAD = "its mean loss is {0} in part {1} of {2}, and FP32's own range ends at {3}"

    def __call__(self, *arguments: object) -> Why:
        return Why(self, tuple(map(str, arguments)))


@dataclass(frozen=True, slots=True)
class Why:
    """A reason with its arguments."""

    reason: Reason
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.reason.value.format(*self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    outcome: Outcome
    why: Why
    fp32: tuple[tuple[float, float], ...] = ()
    """The lowest and the highest mean loss of FP32's runs, for each part, up to the last one that has numbers only."""
    tuned: tuple[float, ...] = ()
    """The mean loss with the settings, for each part: that of the run which is farther from FP32's."""

    @property
    def accepted(self) -> bool:
        return self.outcome == "accepted"


def verdict(
    fp32: Sequence[Recorded], tuned: Sequence[Recorded], precision: Precision, by_chance: Recorded | None = None
) -> Verdict:
    """Hold runs with the settings against runs in FP32, of which the first have the same seeds. `by_chance` is one more
    in FP32 with the seed of the first, in which dropout drew other numbers in the compared iteration.
    """
    if why := _unknown(fp32, tuned):
        return Verdict(outcome="unknown", why=why)
    pairs = list(zip(fp32, tuned, strict=False))
    band, seen, outside = _spread(fp32, tuned)
    whys = [*_no_numbers(tuned), *_steps(tuned)]
    unlike = next((why for plain, one in pairs for why in _unlike(plain, one)), None)
    if unlike is None:
        allowed = _Allowed(LIMITS[precision], fp32[0], by_chance)
        whys += [why for plain, one in pairs for why in _at_equal_weights(plain, one, allowed)]
    whys += outside
    if whys:
        return Verdict(outcome="refused", why=whys[0], fp32=band, tuned=seen)
    if unlike:
        return Verdict(outcome="unknown", why=unlike, fp32=band, tuned=seen)
    return Verdict(outcome="accepted", why=Reason.SAME(), fp32=band, tuned=seen)


def asks_for_chance(found: Verdict) -> bool:
    """Whether a run with other random numbers may show that a refusal was by chance."""
    return found.why.reason in (Reason.GRADIENTS, Reason.ALONG, Reason.PARAMETER, Reason.LOSS)


def _unknown(fp32: Sequence[Recorded], tuned: Sequence[Recorded]) -> Why | None:
    if not fp32 or not tuned or any(one.loss is None for one in (*fp32, *tuned)):
        return Reason.NO_LOSS()
    if not all(math.isfinite(loss) for one in fp32 for loss in one.losses if loss is not None):
        return Reason.FP32_NO_NUMBER()
    bare = next((one for one in fp32 if not 0 < norm_of(one) < math.inf), None)
    return Reason.FP32_NO_GRADIENT(bare.compared) if bare else None


def _unlike(plain: Recorded, other: Recorded) -> Iterator[Why]:
    """Where a run is no repetition of the other up to the compared iteration."""
    usual = typical(plain)
    pairs = zip(plain.losses, other.losses, strict=False)
    for number, (old, new) in enumerate(pairs, start=1):
        if number < max(plain.compared, other.compared) and number < FIRST:
            if (old is None) != (new is None):
                yield Reason.NOT_ALIKE(number, old, new)
            elif old is not None and new is not None and not abs(new - old) <= ALIKE * max(abs(old), usual):
                yield Reason.NOT_ALIKE(number, f"{old:.5g}", f"{new:.5g}")
    if plain.compared != other.compared:
        yield Reason.NOT_ALIKE(other.compared, plain.loss, other.loss)


def _no_numbers(tuned: Sequence[Recorded]) -> Iterator[Why]:
    for one in tuned:
        for number, loss in enumerate(one.losses, start=1):
            if loss is not None and not math.isfinite(loss):
                yield Reason.NO_NUMBER(number)
                return


def _steps(tuned: Sequence[Recorded]) -> Iterator[Why]:
    for one in tuned:
        wrong = [excess for step in one.steps if not (excess := _excess(*step)) <= STEP]
        if wrong:
            yield Reason.STEP(_percent(max(wrong)))


def _excess(difference: float, update: float, values: float) -> float:
    """A step's difference beyond rounding, to the step; no number where it is none."""
    beyond = difference - ROUNDING * values
    if beyond <= 0:
        return 0.0
    return beyond / update if update else math.inf


class _Allowed:
    """What the precision explains, or what chance does: other random numbers of dropout in FP32 itself."""

    def __init__(self, limits: Limits, plain: Recorded, by_chance: Recorded | None) -> None:
        self.limits = limits
        self.gradients, self.loss = limits.gradients, limits.loss
        chance = error_of(plain, by_chance) if by_chance else 0.0
        self.by_chance = chance > limits.along
        """Whether FP32's gradients themselves are another each time, beyond what a GPU's order of additions makes."""
        if self.by_chance:
            self.gradients = max(limits.gradients, AS_BY_CHANCE * chance)
            self.loss = max(limits.loss, chance)


def _at_equal_weights(plain: Recorded, tuned: Recorded, allowed: _Allowed) -> Iterator[Why]:
    before, after = plain.loss or 0.0, tuned.loss or 0.0
    if not abs(after - before) <= allowed.loss * max(abs(before), typical(plain)):
        yield Reason.LOSS(f"{after:.4g}", f"{before:.4g}")
    if len(plain.gradients) != len(tuned.gradients):
        yield Reason.MISSING(len(tuned.gradients), len(plain.gradients))
        return
    error = error_of(plain, tuned)
    if not error <= allowed.gradients:
        yield Reason.GRADIENTS(_percent(error), _percent(allowed.limits.gradients))
    along = along_of(plain, tuned, error)
    if not abs(along - 1) <= allowed.limits.along and not allowed.by_chance:
        yield Reason.ALONG(f"{along:.4g}")
    yield from _of_parameters(plain, tuned, allowed)


def _of_parameters(plain: Recorded, tuned: Recorded, allowed: _Allowed) -> Iterator[Why]:
    whole, limit = norm_of(plain), allowed.limits.parameter
    for place, (old, new) in enumerate(zip(plain.gradients, tuned.gradients, strict=True)):
        if old.norm > NOTICEABLE * whole and not new.norm >= VANISHED * old.norm:
            yield Reason.VANISHES(place)
        own = distance(old, new) / old.norm if old.norm else 0.0
        if old.norm > CONSIDERABLE * whole and not own <= limit and not allowed.by_chance:
            yield Reason.PARAMETER(place, _percent(own), _percent(limit))


def _spread(
    fp32: Sequence[Recorded], tuned: Sequence[Recorded]
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...], list[Why]]:
    """The range of FP32's mean losses in each part, those with the settings, and where these leave it."""
    band, seen, left = [], [], []
    first = max((abs(loss) for one in fp32 for loss in one.losses[:1] if loss is not None), default=0.0)
    for place in range(PARTS):
        plain = [_part(one, place) for one in fp32]
        own = [_part(one, place) for one in tuned]
        if not all(plain) or not all(own):
            continue
        means, ours = [fmean(part) for part in plain], [fmean(part) for part in own]
        if not all(map(math.isfinite, ours)):
            break
        low, high = min(means), max(means)
        error = max((stdev(part) / math.sqrt(len(part)) for part in plain if len(part) > 1), default=0.0)
        margin = max(high - low, WIDER * max(map(abs, means)), 3 * error, FLOOR * first)
        above = max(margin, high * (min(high / low, MOST_TIMES) - 1)) if low > 0 else margin
        worst = max(ours, key=lambda one: max(one - high, low - one))
        band.append((low, high))
        seen.append(worst)
        if not low - margin <= worst <= high + above:
            edge = high + above if worst > high else low - margin
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
