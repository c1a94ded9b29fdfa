"""From values to places in a picture. Whatever a file holds, a place is a number within the picture."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gputune.report.pictures import Mark

WIDTH = 360.0
"""The width of a picture, in the units of its view box: that of a small phone, so that its text needs no scaling."""
FAR_APART = 20.0
"""The ratio of the largest value to the smallest from which on a scale is logarithmic."""
_STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear or logarithmic scale: `low` lies at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        share = self._share(value)
        return round(self.start + share * (self.end - self.start), 1)

    def _share(self, value: float) -> float:
        if self.logarithmic:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return value / self.high if self.low == 0 else (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Three to six round numbers within the scale."""
        return _powers(self.low, self.high) if self.logarithmic else _rounds(self.low, self.high)


def scale_of(values: Iterable[float], start: float, end: float, *, from_zero: bool = True, near: bool = False) -> Scale:
    """A scale that holds all values: from zero, or logarithmic where they lie far apart and `near` is not asked for;
    without `from_zero`, from a little below the smallest.
    """
    found = [value for value in values if math.isfinite(value) and abs(value) < 1e150] or [1.0]
    low, high = min(found), max(found)
    if from_zero:
        positive = [value for value in found if value > 0] or [1.0]
        if not near and max(positive) / min(positive) > FAR_APART:
            return Scale(low=min(positive) / 1.1, high=max(positive) * 1.1, start=start, end=end, logarithmic=True)
        return Scale(low=0.0, high=max(positive) * 1.02, start=start, end=end)
    margin = 0.08 * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(low=low - margin, high=high + margin, start=start, end=end)


def values_of(marks: Iterable[Mark]) -> list[float]:
    """The values, and the ends of their intervals."""
    return [value for mark in marks for value in (mark.value, *(mark.interval or ()))]


def _rounds(low: float, high: float) -> list[float]:
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    step = next((power * one for one in (1, 2, 2.5, 5) if power * one >= rough), power * 10)
    first = math.ceil(low / step - 1e-9)
    return [count * step for count in range(first, first + 8) if low <= count * step <= high]


def _powers(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in (_STEPS, (1, 3), (1,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [value for value in found if low <= value <= high]
        if len(found) <= 6:
            return found
    return found[:: len(found) // 5 + 1]
