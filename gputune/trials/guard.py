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
from typing import Literal

from gputune.trials.recorded import LIMITS, Allowed, Precision, Recorded, differences, norm_of, typical
from gputune.trials.spread import FIRST, spread
from gputune.trials.why import Reason, Why, percent

Outcome = Literal["accepted", "refused", "unknown"]

STEP = 0.0005
"""The relative difference of an optimizer's step from its plain form's, beside what storing it rounds off; arithmetic
makes 1e-4 at the most. AdamW without its weight decay of 0.01 differs by 0.002."""
ROUNDING = 2.0**-22
"""The share of a parameter's value that storing it after a step may round off."""
ALIKE = 0.005
"""The relative difference of losses before anything was put in, from which on runs are not repetitions."""


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
    band, seen, outside = spread(fp32, tuned)
    whys = [*_no_numbers(tuned), *_steps(tuned)]
    unlike = next((why for plain, one in pairs for why in _unlike(plain, one)), None)
    if unlike is None:
        allowed = Allowed(LIMITS[precision], fp32[0], by_chance)
        whys += [why for plain, one in pairs for why in differences(plain, one, allowed)]
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
            yield Reason.STEP(percent(max(wrong)))


def _excess(difference: float, update: float, values: float) -> float:
    """A step's difference beyond rounding, to the step; no number where it is none."""
    beyond = difference - ROUNDING * values
    if beyond <= 0:
        return 0.0
    return beyond / update if update else math.inf
