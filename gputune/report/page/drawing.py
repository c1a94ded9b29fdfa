"""Charts as figures: pictures, and below them the table with all numbers.

A picture is SVG with a row for each name. One value in a row is a bar, several are dots with a shape for each series;
whiskers are the intervals at 99 %. Whatever a file holds, a place is a number within the picture.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gputune.report.charts import STAR, Bar, Cell, Chart, Mark, Picture, number
from gputune.report.fitting import shortened, told_apart
from gputune.report.page.markup import TIMES, TO, Markup, element, joined

WIDTH = 360.0
"""The width of a picture, in the units of its view box: that of a small phone, so that its text needs no scaling."""
FAR_APART = 20.0
"""The ratio of the largest value to the smallest from which on the scale of dots is logarithmic."""
STEP, TALL = 36.0, 9.0
"""The height of a row of bars, and of a bar in it."""
DOTS_STEP = 40.0
"""The height of a row of dots: in less, dots touch the next row's name."""
APART = 3.5
"""How far the series of a row lie apart, so that equal values do not cover each other."""
LONGEST = 48
"""The most characters of a name that a picture has room for."""
DRAWN_STAR = "★"
TALLEST = 10
"""From how many rows on a picture is as high as two others."""
MOST_SAID = 12
"""The most values that a picture's name for screen readers has; the table below the pictures has all of them."""
SHAPES = (
    "M0 -4.5a4.5 4.5 0 1 0 .01 0z", "M-4 -4h8v8h-8z", "M0 -5.5L5.5 0L0 5.5L-5.5 0z", "M0 -5L5 4H-5z", "M0 5L5 -4H-5z",
)  # fmt: skip
"""A shape for each series, told apart without colours."""


def figure(chart: Chart) -> Markup:
    # Bars are a terminal's pictures, and so is its star.
    rows: list[tuple[Cell, ...]] = [
        tuple("" if isinstance(cell, Bar) else DRAWN_STAR if cell == STAR else cell for cell in row)
        for row in chart.rows
    ]
    chart = replace(chart, rows=rows).filled()
    panels = [_panel(one, chart.title) for one in chart.pictures if one.rows]
    name = f"The numbers of: {chart.title}"
    # What may be wider than the page moves in a frame of its own, by keyboard too.
    numbers = element("div", _table(chart), class_="scroll", role="region", aria_label=name, tabindex=0)
    parts = [element("div", *panels, class_="pictures"), folded("The numbers", numbers)] if panels else [numbers]
    kind = "chart single" if len(panels) == 1 else "chart"
    caption = f"{chart.title} ({DRAWN_STAR} {chart.star})" if chart.star else chart.title
    return element("figure", element("figcaption", caption), *parts, class_=kind)


def _panel(picture: Picture, title: str) -> Markup:
    whole = f"{title}: {picture.name}" if picture.name else title
    name = element("p", picture.name, class_="panel-name") if picture.name else ""
    return element("div", name, draw(picture, whole), class_="panel tall" if len(picture.rows) >= TALLEST else "panel")


def _table(chart: Chart) -> Markup:
    kinds = ["number" if name in chart.numbers else None for name in chart.columns]
    heads = [
        element("th", name, scope="col", class_=kind) if name else element("td")
        for name, kind in zip(chart.columns, kinds, strict=True)
    ]
    rows = (zip(row, kinds, strict=False) for row in chart.rows)
    body = [element("tr", *(element("td", str(cell), class_=kind) for cell, kind in row)) for row in rows]
    head = element("thead", element("tr", *heads)) if any(chart.columns) else ""
    return element("table", head, element("tbody", *body))


def folded(summary: str, *inner: str, kind: str = "numbers") -> Markup:
    """Open where no script closes it."""
    return element("details", element("summary", summary), joined(inner), class_=kind, open=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear or logarithmic scale: `low` lies at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, value, high = self.low, min(max(value, self.low), self.high), self.high
        if self.logarithmic:
            low, value, high = math.log(low), math.log(value), math.log(high)
        return round(self.start + (value - low) / (high - low) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [10.0**power for power in powers if self.low <= 10.0**power <= self.high]
            return found[:: len(found) // 6 + 1]
        rough = (self.high - self.low) / 4
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [count * step for count in range(first, first + 6) if self.low <= count * step <= self.high]


def scale_of(values: Iterable[float], start: float, end: float, *, far: float = math.inf) -> Scale:
    """A scale from zero, or from the smallest value if that is negative, that holds all values. It is logarithmic if
    all are positive and the largest is more than `far` times the smallest.
    """
    found = [value for value in values if math.isfinite(value) and abs(value) < 1e150] or [1.0]
    low, high = min(found), max(found)
    positive = [value for value in found if value > 1e-150]
    if low >= 0 and positive and max(positive) / min(positive) > far:
        return Scale(low=min(positive) / 1.1, high=max(positive) * 1.1, start=start, end=end, logarithmic=True)
    low, high = min(low * 1.02, 0.0), max(high * 1.02, 0.0)
    return Scale(low=low, high=high if high - low > 1e-150 else 1.0, start=start, end=end)


def draw(picture: Picture, title: str) -> Markup:
    """The picture as an image that is named with the title and its first values. Its size follows the page's width."""
    every = [mark for marks in picture.rows.values() for mark in marks]
    values = [value for mark in every for value in (mark.value, *(mark.interval or ()))]
    is_bars = all(len(marks) == 1 for marks in picture.rows.values())
    parts, height = _bars(picture, values) if is_bars else _dots(picture, values)
    kind = ("bars picked" if any(mark.chosen for mark in every) else "bars") if is_bars else "dots"
    name, box = f"{title}. {_said(picture)}", f"0 0 {WIDTH:.0f} {height:.0f}"
    return element("svg", *parts, class_=f"picture {kind}", role="img", aria_label=name, viewBox=box)


def _bars(picture: Picture, values: Sequence[float]) -> tuple[list[Markup], float]:
    """The name and the number stand above each bar, so that a long name has room on a phone."""
    base = picture.base
    scale = scale_of([*values, *([base] if base else [])], 0, WIDTH - 1)
    parts = []
    values_of = {row: _value(mark, TIMES if base else "") for row, (mark,) in picture.rows.items()}
    room = max(12, min((int((WIDTH - 6.3 * len(value)) / 6.7) for value in values_of.values()), default=12))
    names = told_apart([f"{row}, refused" if mark.refused else row for row, (mark,) in picture.rows.items()], room, "…")
    for place, (row, (mark,)) in enumerate(picture.rows.items()):
        top, name, value = place * STEP, f"{row}, refused" if mark.refused else row, values_of[row]
        zero, reach = scale(0.0), scale(mark.value)
        bar = element("rect", x=min(zero, reach), y=top + 18, width=max(1.0, abs(reach - zero)), height=TALL, rx=1.5)
        line = element("path", d=f"M{scale(base)} {top + 15:.0f}v15", class_="base") if base else ""
        kind = f"mark{' chosen' if mark.chosen else ''}{' refused' if mark.refused else ''}"
        whisker = _whisker(mark, scale, top + 18 + TALL / 2)
        texts = _words(names[name], 0, top + 13, "name"), _words(value, WIDTH, top + 13, "value end")
        parts.append(element("g", _hint(name, mark, picture.unit), *texts, bar, whisker, line, class_=kind))
    return parts, max(8.0, len(picture.rows) * STEP)


def _value(mark: Mark, sign: str) -> str:
    """The number above a bar. Next to a note there is room only for the whisker."""
    interval = f" ({TO.join(map(number, mark.interval))})" if mark.interval and not mark.note else ""
    star, note = f"{DRAWN_STAR} " if mark.chosen else "", f" · {mark.note}" if mark.note else ""
    return f"{star}{number(mark.value)}{sign}{interval}{note}"


def _dots(picture: Picture, values: Sequence[float]) -> tuple[list[Markup], float]:
    series = list(dict.fromkeys(mark.name for marks in picture.rows.values() for mark in marks))
    parts, top = _legend(series)
    scale = scale_of(values, 8, WIDTH - 8, far=FAR_APART)
    bottom = top + len(picture.rows) * DOTS_STEP
    parts += _ticks(scale, top, bottom)
    names = told_apart(list(picture.rows), LONGEST, "…")
    for place, (row, marks) in enumerate(picture.rows.items()):
        y = top + place * DOTS_STEP + 26
        parts += [_words(names[row], 0, y - 13, "name"), element("path", d=f"M0 {y}H{WIDTH}", class_="line")]
        for mark in marks:
            kind = series.index(mark.name)
            at = y + APART * (min(kind, 4) - (min(len(series), 5) - 1) / 2)
            dot, hint = _shape(kind, scale(mark.value), at), _hint(f"{row}, {mark.name}", mark, picture.unit)
            parts.append(element("g", hint, _whisker(mark, scale, at), dot, class_=f"mark s{kind % 5}"))
    parts.append(_words(picture.unit, WIDTH, bottom + 26, "tick end"))
    return parts, bottom + 30


def _shape(kind: int, x: float, y: float) -> Markup:
    return element("path", d=SHAPES[kind % len(SHAPES)], transform=f"translate({x} {y})", class_="dot")


def _legend(series: Sequence[str]) -> tuple[list[Markup], float]:
    parts: list[Markup] = []
    x, y = 6.0, 9.0
    for kind, name in enumerate(told_apart(series, 30, "…").values()):
        wide = 30 + 6.5 * len(name)
        if x + wide > WIDTH and x > 6:
            x, y = 6.0, y + 18
        parts.append(element("g", _shape(kind, x, y), _words(name, x + 10, y + 4, "legend"), class_=f"s{kind % 5}"))
        x += wide
    return parts, y + 14


def _ticks(scale: Scale, top: float, bottom: float) -> list[Markup]:
    parts: list[Markup] = []
    for value in scale.ticks():
        x = scale(value)
        line = element("path", d=f"M{x} {top}V{bottom}", class_="grid")
        parts += [line, _words(tick_text(value), x, bottom + 13, "tick middle")]
    return parts


def tick_text(value: float) -> str:
    """A number for an axis: `0.5`, `250`, `15k`, `2M`."""
    for least, factor, sign in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if least <= value < 1e12:
            return f"{value / factor:.4g}{sign}"
    return f"{value:.4g}"


def _whisker(mark: Mark, scale: Scale, y: float) -> Markup:
    if mark.interval is None:
        return Markup("")
    low, high = sorted(map(scale, mark.interval))
    return element("path", d=f"M{low} {y - 3}v6M{low} {y}H{high}M{high} {y - 3}v6", class_="whisker")


def _hint(name: str, mark: Mark, unit: str) -> Markup:
    return element("title", f"{name}: {_value_text(mark)} {unit}")


def _value_text(mark: Mark) -> str:
    """The value with its interval and note, as `12.8 (12.6 to 13.0), 3 ms`."""
    interval = f" ({' to '.join(map(number, mark.interval))})" if mark.interval else ""
    return f"{number(mark.value)}{interval}{f', {mark.note}' if mark.note else ''}"


def _words(text: str, x: float, y: float, kind: str) -> Markup:
    return element("text", shortened(text, LONGEST, "…"), x=x, y=y, class_=kind)


def _said(picture: Picture) -> str:
    said = [
        f"{' '.join(filter(None, (row, mark.name)))} {_value_text(mark)}{', recommended' if mark.chosen else ''}"
        for row, marks in picture.rows.items()
        for mark in marks
    ]
    more = f"; and {len(said) - MOST_SAID} more, in the table" if len(said) > MOST_SAID else ""
    return f"{picture.unit}: {'; '.join(said[:MOST_SAID])}{more}"
