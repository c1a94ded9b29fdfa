"""Whether a program that trains nothing answers with a combination of settings as it does in FP32. Pure.

A combination is refused where an output of the same inputs differs by more than its precision explains, in shape, or
in numbers that are not finite, where another element of a row is the largest although FP32's lead is clear, or where
labels differ. Nothing is known where calls with torch's defaults are as far apart by themselves.
"""

from collections.abc import Iterator

from gputune.live.equal_weights import SAME_LABELS, percent
from gputune.live.orders import OutputsCompared
from gputune.profile import Guard

AGREEING = 0.999
"""The share of the clear rows in which the largest element must be the same."""
CALLS = 20
"""So many calls are compared at the most."""


def verdict(found: OutputsCompared, limit: float) -> Guard:
    """`limit` is the relative error of an output, in the norm, that the precision explains."""
    if refused := next(_refused(found, limit), None):
        return Guard(verdict="refused", steps=found.calls, reason=refused)
    if unknown := next(_unknown(found, limit), None):
        return Guard(verdict="unknown", steps=found.calls, reason=unknown)
    reason = f"outputs within {percent(found.error)} % of FP32's"
    if found.rows:
        reason += f", the largest element the same in {found.agreeing} of {found.rows} rows in which it is clear"
    return Guard(verdict="accepted", steps=found.calls, reason=reason)


def _unknown(found: OutputsCompared, limit: float) -> Iterator[str]:
    if not found.calls:
        yield found.failed or "no output was a tensor"
    if found.spread > limit:
        yield f"two calls with the same inputs differ by {percent(found.spread)} % without any settings"


def _refused(found: OutputsCompared, limit: float) -> Iterator[str]:
    if not found.finite:
        yield "an output is no number where FP32's is"
    if not found.alike:
        yield "outputs of the same inputs have another number or shape"
    if found.spread > limit:
        return
    differing, others = found.rows - found.agreeing, found.labels - found.same_labels
    if found.error > limit:
        yield f"outputs of the same inputs differ by {percent(found.error)} % instead of at most {percent(limit)} %"
    if differing > (1 - AGREEING) * found.rows:
        yield f"the largest element is another one in {differing} of {found.rows} rows in which it is clear"
    if others > (1 - SAME_LABELS) * found.labels:
        yield f"{others} of {found.labels} whole numbers are others"
