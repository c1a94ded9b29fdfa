"""Lines over places that follow one another, with whiskers, and the band that they are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gputune.report.page.dots import legend, shape
from gputune.report.page.markup import Markup, element
from gputune.report.page.scale import WIDTH, Scale, scale_of, values_of
from gputune.report.page.svg import MOST_SAID, hint, picture, said, tick_text, words
from gputune.report.pictures import Lines, Mark

TALL = 150.0
LEFT = 44.0


def draw(chart: Lines, title: str) -> Markup:
    every = [mark for marks in chart.lines.values() for mark in marks]
    places = _places([*(mark.name for mark in every), *chart.band])
    several = len(chart.lines) > 1 or bool(chart.band)
    parts, top = legend(list(chart.lines)) if several else ([], 16.0)
    bottom = top + TALL
    edges = [edge for band in chart.band.values() for edge in band]
    scale = scale_of([*values_of(every), *edges], bottom, top, from_zero=chart.from_zero, near=True)
    across = _across(places)
    parts += _grid(scale)
    if chart.band:
        parts.append(_band(chart.band, across, scale))
    for kind, (name, marks) in enumerate(chart.lines.items()):
        parts += _line(name, marks, kind, (across, scale, chart.unit))
    parts += _names(across, bottom)
    parts.append(words(f"{chart.unit} by {chart.across}", WIDTH, bottom + 29, "tick end"))
    return picture(f"{title}. {_said(chart, every)}", bottom + 33, parts, kind="lines")


def _places(names: Sequence[str]) -> list[str]:
    """The places in order: numbers by their size."""
    unique = list(dict.fromkeys(names))
    return sorted(unique, key=float) if all(name.isdecimal() and name.isascii() for name in unique) else unique


def _across(places: Sequence[str]) -> dict[str, float]:
    step = (WIDTH - LEFT - 24) / max(1, len(places) - 1)
    return {name: round(LEFT + 12 + step * place, 1) for place, name in enumerate(places)}


def _grid(scale: Scale) -> list[Markup]:
    parts = []
    for value in scale.ticks():
        y = scale(value)
        parts.append(element("path", d=f"M{LEFT} {y}H{WIDTH}", class_="grid"))
        parts.append(words(tick_text(value), LEFT - 5, y + 4, "tick end"))
    return parts


def _band(band: Mapping[str, tuple[float, float]], across: Mapping[str, float], scale: Scale) -> Markup:
    over = [f"{across[name]} {scale(max(edges))}" for name, edges in band.items()]
    under = [f"{across[name]} {scale(min(edges))}" for name, edges in band.items()]
    return element("path", d=f"M{'L'.join([*over, *reversed(under)])}z", class_="band")


Space = tuple[Mapping[str, float], Scale, str]


def _line(name: str, marks: Sequence[Mark], kind: int, space: Space) -> list[Markup]:
    across, scale, _ = space
    points = "L".join(f"{across[mark.name]} {scale(mark.value)}" for mark in marks)
    return [
        element("path", d=f"M{points}" if points else "", class_=f"curve s{kind % 5}"),
        *(_point(f"{name}, {mark.name}", mark, kind, space) for mark in marks),
    ]


def _point(name: str, mark: Mark, kind: int, space: Space) -> Markup:
    across, scale, unit = space
    x, y = across[mark.name], scale(mark.value)
    parts = [hint(name, mark, unit)]
    if mark.interval:
        low, high = (scale(value) for value in mark.interval)
        parts.append(element("path", d=f"M{x - 3} {low}h6M{x} {low}V{high}M{x - 3} {high}h6", class_="whisker"))
    parts.append(shape(kind, x, y))
    if mark.chosen:
        parts.append(words("★", x, min(y, scale(max(mark.interval or (0,)))) - 8, "star middle"))
    return element("g", *parts, class_=f"mark s{kind % 5}{' chosen' if mark.chosen else ''}")


def _names(across: Mapping[str, float], bottom: float) -> list[Markup]:
    parts, last = [], -100.0
    for name, x in across.items():
        if x - last >= 6.5 * min(len(name), 8) + 4:
            parts.append(words(name, x, bottom + 15, "tick middle", 8))
            last = x
    return parts


def _said(chart: Lines, every: Sequence[Mark]) -> str:
    band = "; ".join(f"{place}: {tick_text(low)} to {tick_text(high)}" for place, (low, high) in chart.band.items())
    held = f". The band that it is held against, {band}" if band else ""
    if len(every) <= MOST_SAID:
        lines = "; ".join(f"{name}, {said(marks, chart.unit)}" for name, marks in chart.lines.items())
        return f"By {chart.across}: {lines}{held}"
    return f"{chart.unit} by {chart.across}, {', '.join(chart.lines)}: the table has every number{held}"
