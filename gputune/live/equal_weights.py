"""How far what one batch gives at equal weights is from what it gives in FP32: outputs, loss and gradients.

Pure: records of two runs from one seed come in, or of two calls in one program.

Floats are compared in the norm, each element by its error to its own size or, where that is more, to the typical one.
Whole numbers, and booleans, are compared by the share that differs. Any rounding makes another label of a near tie, and
so another code or another expert, which changes all that is computed from it: so floats may differ in that share, too.

Counts are whole numbers that may each be a little off: those of few elements, and those that add up to the same.

Other random numbers of dropout explain `AS_BY_CHANCE` times as much as they change in FP32.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, median

from ..knobs import Limits
from .records import Output, Recorded

SAME_LABELS = 0.95
"""The share of whole numbers that must be the same in a program that trains nothing: labels as a rule, of which nobody
knows how clear they were."""
NEAR_TIES = 3.0
"""So many times the relative error that a precision explains is the share of whole numbers that it explains in a
training, 15 % in bfloat16: at its third step weights are new as a rule, and many labels near ties. `docs/measuring.md`
has the table."""
LARGE = 100.0
"""An element so many times the median one is none of the typical ones."""
AS_BY_CHANCE = 2.0
"""A difference is left to the loss up to so many times the one that other random numbers of dropout make in FP32. One
draw tells that of others within a factor of 1.7 where the network and the batch are small."""

CONSIDERABLE, NOTICEABLE = 0.05, 0.01
"""The share of the norm of all gradients from which a parameter's own difference counts, and its vanishing."""
VANISHED = 0.05


def percent(share: float) -> str:
    return f"{100 * share:.3g}"


def batch_differences(
    plain: Recorded, tuned: Recorded, limits: Limits, base: Recorded, by_chance: Recorded | None
) -> Iterator[tuple[str, bool]]:
    """Each difference between two runs of a batch that the precision does not explain, in words, and whether other
    random numbers of dropout may be its cause. `by_chance` is `base` with such numbers.
    """
    yield from _of_gradients_and_loss(plain, tuned, allowed(limits, base, by_chance))
    others = by_chance.outputs if by_chance else None
    for why in _of_outputs(plain.outputs, tuned.outputs, limits.outputs, typical(plain), others):
        yield why, True


def _of_outputs(
    plain: Sequence[Output], tuned: Sequence[Output], limit: float, loss: float, by_chance: Sequence[Output] | None
) -> Iterator[str]:
    """Each output that differs by more than the precision explains, in words. Floats may differ by the relative error
    `limit`; a few numbers are held against the usual `loss` if that is more, since they may be parts of it and nearly
    zero.
    """
    others = plain if by_chance is None else by_chance
    if _forms(others) != _forms(plain):
        return
    if _forms(tuned) != _forms(plain):
        yield "models' outputs have another number or shape at equal weights"
        return
    explained = _Explained(limit=limit, loss=loss)
    for old, new, other in zip(plain, tuned, others, strict=True):
        if new.not_finite > max(old.not_finite, other.not_finite):
            yield f"{old.name} is no number where FP32's is"
        elif why := (explained.whole if old.is_whole else explained.floats)(old, new, other):
            yield f"{old.name} differs {why}"


def _forms(outputs: Sequence[Output]) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(one.name, one.shape, one.is_whole) for one in outputs]


@dataclass(frozen=True, kw_only=True)
class _Explained:
    limit: float
    loss: float

    @property
    def share(self) -> float:
        return NEAR_TIES * self.limit

    def whole(self, old: Output, new: Output, other: Output) -> str | None:
        share, most = _differing(old, new), max(self.share, AS_BY_CHANCE * _differing(old, other))
        if share <= most or self._may_be_off(old, new):
            return None
        return f"in {percent(share)} % of its whole numbers at equal weights instead of at most {percent(most)} %"

    def floats(self, old: Output, new: Output, other: Output) -> str | None:
        errors = self._errors(old, new)
        error, most = _norm(errors), max(self.limit, AS_BY_CHANCE * _norm(self._errors(old, other)))
        beyond = NormalDist().inv_cdf(1 - self.share / 2) * most  # what that share of a normal distribution is above
        if error <= most or sum(one > beyond for one in errors) <= self.share * len(errors):
            return None
        return f"by {percent(error)} % at equal weights instead of at most {percent(most)} %"

    def _errors(self, old: Output, new: Output) -> list[float]:
        """For each element, but those that are no numbers: its error to its size or to the typical one."""
        pairs = [pair for pair in zip(old.sample, new.sample, strict=True) if all(map(math.isfinite, pair))]
        sizes = [abs(one) for one, _ in pairs if one]
        least = _norm([one for one in sizes if one <= LARGE * median(sizes)])
        if self._are_few(old):
            least = max(least, self.loss)
        return [abs(one - other) / (max(abs(one), least) or abs(other)) if one != other else 0 for one, other in pairs]

    def _may_be_off(self, old: Output, new: Output) -> bool:
        """Whether a single one of few labels is another, or counts are off by little."""
        count, are_few = len(old.sample), self._are_few(old)
        if are_few and count > 1 and _differing(old, new) * count <= 1:
            return True
        distance, norm = math.dist(old.sample, new.sample), math.hypot(*old.sample)
        return (are_few or old.total == new.total) and distance <= max(1.0, self.limit * norm)

    def _are_few(self, one: Output) -> bool:
        """Whether a single element is more than the share that may differ."""
        return len(one.sample) * self.share < 1


def _differing(old: Output, new: Output) -> float:
    pairs = list(zip(old.sample, new.sample, strict=True))
    return sum(one != other for one, other in pairs) / len(pairs) if pairs else 0.0


def _norm(numbers: Sequence[float]) -> float:
    """The root of the mean square."""
    return math.hypot(*numbers) / math.sqrt(len(numbers)) if numbers else 0.0


def typical(one: Recorded) -> float:
    """The mean size of a run's losses."""
    return fmean(abs(loss) for loss in one.losses if loss is not None)


def error_of(plain: Recorded, other: Recorded) -> float:
    """The norm of the difference of all gradients, to that of FP32's."""
    whole = norm_of(plain)
    pairs = zip(plain.gradients, other.gradients, strict=False)
    return math.hypot(*(math.dist(old.sketch, new.sketch) for old, new in pairs)) / whole if whole else 0.0


def norm_of(one: Recorded) -> float:
    return math.hypot(*(gradient.norm for gradient in one.gradients))


def allowed(limits: Limits, plain: Recorded, by_chance: Recorded | None) -> Limits:
    """The differences that the precision explains, or more if other random numbers of dropout make FP32's own gradients
    differ by more than a GPU's order of additions does. One parameter then tells nothing, nor does a direction.
    """
    chance = error_of(plain, by_chance) if by_chance else 0.0
    if not chance > limits.along:
        return limits
    gradients = max(limits.gradients, AS_BY_CHANCE * chance)
    return Limits(loss=max(limits.loss, chance), gradients=gradients, along=math.inf, parameter=math.inf)


def _of_gradients_and_loss(plain: Recorded, tuned: Recorded, limits: Limits) -> Iterator[tuple[str, bool]]:
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
    ratio = norm_of(tuned) / norm_of(plain)
    along = (1 + ratio**2 - error**2) / 2  # from the lengths of all three sides of the triangle
    if not abs(along - 1) <= limits.along:
        yield f"the gradients of one batch at equal weights are {along:.4g} times FP32's", True
    yield from _of_parameters(plain, tuned, limits.parameter)


def _of_parameters(plain: Recorded, tuned: Recorded, limit: float) -> Iterator[tuple[str, bool]]:
    whole = norm_of(plain)
    for place, (old, new) in enumerate(zip(plain.gradients, tuned.gradients, strict=True)):
        if old.norm > NOTICEABLE * whole and not new.norm >= VANISHED * old.norm:
            yield f"the gradient of parameter {place} vanishes", False
        own = math.dist(old.sketch, new.sketch) / old.norm if old.norm else 0.0
        if old.norm > CONSIDERABLE * whole and not own <= limit:
            differs = f"differs by {percent(own)} % at equal weights instead of at most {percent(limit)} %"
            yield f"the gradient of parameter {place} {differs}", True
