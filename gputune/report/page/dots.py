"""Dots with whiskers on one line for each row: what was measured of the same thing in several ways."""

from __future__ import annotations

from collections.abc import Sequence

from gputune.report.page.markup import Markup, element
from gputune.report.page.scale import WIDTH, scale_of, values_of
from gputune.report.page.svg import MOST_SAID, hint, picture, said, ticks, whisker, words
from gputune.report.pictures import Dots

STEP = 40.0
APART = 3.5
"""How far the series of a row lie apart, so that equal values do not cover each other."""
SHAPES = (
    "M0 -4.5a4.5 4.5 0 1 0 .01 0z",
    "M-4 -4h8v8h-8z",
    "M0 -5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 -5L5 4H-5z",
    "M0 5L5 -4H-5z",
)
"""A shape for each series, told apart without colours."""


def draw(chart: Dots, title: str) -> Markup:
    series = list(dict.fromkeys(mark.name for marks in chart.rows.values() for mark in marks))
    parts, top = legend(series)
    every = [mark for marks in chart.rows.values() for mark in marks]
    scale = scale_of(values_of(every), 8, WIDTH - 8)
    bottom = top + len(chart.rows) * STEP
    parts += ticks(scale, top, bottom)
    for place, (row, marks) in enumerate(chart.rows.items()):
        y = top + place * STEP + 26
        parts.append(words(row, 0, y - 13, "name"))
        parts.append(element("path", d=f"M0 {y}H{WIDTH}", class_="line"))
        for mark in marks:
            kind = series.index(mark.name)
            at = y + APART * (min(kind, 4) - (min(len(series), 5) - 1) / 2)
            dot = shape(kind, scale(mark.value), at)
            name = f"{row}, {mark.name}"
            parts.append(
                element("g", hint(name, mark, chart.unit), whisker(mark, scale, at), dot, class_=f"mark s{kind % 5}")
            )
    parts.append(words(chart.unit, WIDTH, bottom + 26, "tick end"))
    return picture(f"{title}. {_said(chart, len(every))}", bottom + 30, parts, kind="dots")


def shape(kind: int, x: float, y: float) -> Markup:
    return element("path", d=SHAPES[kind % len(SHAPES)], transform=f"translate({x} {y})", class_="dot")


def legend(series: Sequence[str]) -> tuple[list[Markup], float]:
    """The shape of each series with its name, and where the picture goes on below."""
    parts: list[Markup] = []
    x, y = 6.0, 9.0
    for kind, name in enumerate(series):
        wide = 30 + 6.5 * min(len(name), 30)
        if x + wide > WIDTH and x > 6:
            x, y = 6.0, y + 18
        label = words(name, x + 10, y + 4, "legend", 30)
        parts.append(element("g", shape(kind, x, y), label, class_=f"s{kind % 5}"))
        x += wide
    return parts, y + 14


def _said(chart: Dots, count: int) -> str:
    if count <= MOST_SAID:
        return f"{chart.unit}. " + "; ".join(f"{row}: {said(marks, '')[2:]}" for row, marks in chart.rows.items())
    return f"{chart.unit} of {len(chart.rows)} rows, {count} values in all: the table has every number"
