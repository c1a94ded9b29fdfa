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

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from gputune.knobs import Limits
from gputune.live.equal_weights import batch_differences, norm_of, percent, typical
from gputune.live.records import Recorded

Outcome = Literal["accepted", "refused", "unknown"]

PARTS = 5
FIRST = 3
"""The first iterations, which are the same with and without the settings, are in no part."""
WIDER = 0.02
MOST_TIMES = 3.0
"""A small residual network fell to 0.004 to 0.013 of 1.4, by the seed, and in bfloat16 to 0.022 with two of eight."""
FLOOR = 1e-4
"""The share of its first loss below which nobody looks at a program's loss."""
STEP = 0.0005
"""The relative difference of an optimizer's step from its plain form's: arithmetic makes 1e-4, a lost weight decay of
0.01 makes 0.002."""
ROUNDING = 2.0**-22
"""The share of a parameter's value that storing it after a step may round off."""
ALIKE = 0.005
"""The relative difference of losses before anything was put in, from which on runs are not repetitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    outcome: Outcome
    why: str
    may_be_chance: bool = False
    """Whether a run with other random numbers may show that a refusal was by chance."""
    fp32: tuple[tuple[float, float], ...] = ()
    """The lowest and the highest mean loss of FP32's runs, for each part, up to the last one that has numbers only."""
    tuned: tuple[float, ...] = ()
    """The mean loss with the settings, for each part: that of the run which is farther from FP32's."""


def verdict(
    fp32: Sequence[Recorded], tuned: Sequence[Recorded], limits: Limits, by_chance: Recorded | None = None
) -> Verdict:
    """Hold runs with the settings against runs in FP32, of which the first have the same seeds. `by_chance` is one more
    in FP32 with the seed of the first, in which dropout drew other numbers in the compared iteration.
    """
    if why := _unknown(fp32, tuned):
        return Verdict(outcome="unknown", why=why)
    pairs = list(zip(fp32, tuned, strict=False))
    band, seen, outside = spread(fp32, tuned)
    whys = [(why, False) for why in (*_no_numbers(tuned), *_steps(tuned))]
    unlike = next((why for plain, one in pairs for why in _unlike(plain, one)), None)
    if unlike is None:
        whys += [why for plain, one in pairs for why in batch_differences(plain, one, limits, fp32[0], by_chance)]
    whys += [(why, False) for why in outside]
    if whys:
        why, may_be_chance = whys[0]
        return Verdict(outcome="refused", why=why, may_be_chance=may_be_chance, fp32=band, tuned=seen)
    if unlike:
        return Verdict(outcome="unknown", why=unlike, fp32=band, tuned=seen)
    return Verdict(outcome="accepted", why="loss within FP32's own spread", fp32=band, tuned=seen)


def _unknown(fp32: Sequence[Recorded], tuned: Sequence[Recorded]) -> str | None:
    if not fp32 or not tuned or any(one.loss is None for one in (*fp32, *tuned)):
        return "no call of backward on a scalar was seen"
    if not all(math.isfinite(loss) for one in fp32 for loss in one.losses if loss is not None):
        return "the loss is no number in FP32 either"
    bare = next((one for one in fp32 if not 0 < norm_of(one) < math.inf), None)
    return f"in FP32 no gradients that are numbers were seen at step {bare.compared}" if bare else None


def _unlike(plain: Recorded, other: Recorded) -> Iterator[str]:
    """Where a run is no repetition of the other up to the compared iteration."""
    usual = typical(plain)
    pairs = zip(plain.losses, other.losses, strict=False)
    for number, (old, new) in enumerate(pairs, start=1):
        if number < max(plain.compared, other.compared) and number < FIRST:
            if (old is None) != (new is None):
                yield _apart(number, old, new)
            elif old is not None and new is not None and not abs(new - old) <= ALIKE * max(abs(old), usual):
                yield _apart(number, f"{old:.5g}", f"{new:.5g}")
    if plain.compared != other.compared:
        yield _apart(other.compared, plain.loss, other.loss)


def _apart(number: int, old: object, new: object) -> str:
    return f"two runs from one seed differ before any setting is on: the loss of step {number} is {old}, and {new}"


def _no_numbers(tuned: Sequence[Recorded]) -> Iterator[str]:
    for one in tuned:
        for number, loss in enumerate(one.losses, start=1):
            if loss is not None and not math.isfinite(loss):
                yield f"its loss is no number from step {number} on"
                return


def _steps(tuned: Sequence[Recorded]) -> Iterator[str]:
    for one in tuned:
        wrong = [excess for step in one.steps if not (excess := _excess(*step)) <= STEP]
        if wrong:
            yield f"the optimizer's step differs from its plain form's by {percent(max(wrong))} %"


def _excess(difference: float, update: float, values: float) -> float:
    """A step's difference beyond rounding, to the step; no number where it is none."""
    beyond = difference - ROUNDING * values
    if beyond <= 0:
        return 0.0
    return beyond / update if update else math.inf


def spread(
    fp32: Sequence[Recorded], tuned: Sequence[Recorded]
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...], list[str]]:
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
            mean = f"its mean loss is {worst:.4g} in part {place + 1} of {PARTS}"
            left.append((place, f"{mean}, and FP32's own range ends at {edge:.4g}"))
    counts = len(left) > 1 or any(place == PARTS - 1 for place, _ in left)
    return tuple(band), tuple(seen), [why for _, why in left] if counts else []


def _part(one: Recorded, place: int) -> list[float]:
    losses = one.losses[FIRST:]
    begin, end = (len(losses) * part // PARTS for part in (place, place + 1))
    return [loss for loss in losses[begin:end] if loss is not None]
