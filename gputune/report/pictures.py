"""What a page draws of a chart, as data: values with their intervals. A terminal has the chart's own rows and bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gputune.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One value, and the interval at 99 % that it lies in, where one is known."""

    name: str
    value: float
    interval: tuple[float, float] | None = None
    note: str = ""
    """What else is known of it, such as the milliseconds behind a ratio."""
    chosen: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar for each value, from zero on."""

    name: str = ""
    unit: str
    marks: tuple[Mark, ...]
    base: float | None = None
    """What the values are held against, such as 1 for ratios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """A line for each row, with a dot for each series that was measured there."""

    name: str = ""
    unit: str
    rows: Mapping[str, tuple[Mark, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A line for each series, over places that the marks name, in one order."""

    name: str = ""
    across: str
    """What the places are."""
    unit: str
    lines: Mapping[str, tuple[Mark, ...]]
    band: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The range that values are held against, at each place."""
    from_zero: bool = True


Picture = Bars | Dots | Lines


def mark(name: str, row: Measurement, note: str = "") -> Mark:
    return Mark(name=name, value=row.median, interval=row.interval, note=note)


def ratio_mark(name: str, row: Measurement, base: Measurement | None, note: str = "") -> Mark | None:
    """How many times as fast as `base` a row is; None where they cannot be compared."""
    if row is base:
        return Mark(name=name, value=1.0, note=note)
    compared = row.against(base) if base else None
    return Mark(name=name, value=compared.ratio, interval=compared.interval, note=note) if compared else None


def scaled(one: Mark, factor: float) -> Mark:
    """The mark in another unit."""
    low, high = one.interval or (0.0, 0.0)
    interval = (low * factor, high * factor) if one.interval else None
    return replace(one, value=one.value * factor, interval=interval)


def per(one: Mark, amount: float) -> Mark:
    """A rate as the time that `amount` takes."""
    low, high = one.interval or (0.0, 0.0)
    interval = (amount / high, amount / low) if one.interval and low > 0 else None
    return replace(one, value=amount / one.value, interval=interval)
