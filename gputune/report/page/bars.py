"""Bars with whiskers: the name and the number above each, so that a long name has room on a phone."""

from __future__ import annotations

from gputune.report.charts import number
from gputune.report.page.markup import TIMES, TO, Markup, element
from gputune.report.page.scale import WIDTH, Scale, scale_of, values_of
from gputune.report.page.svg import hint, picture, said, whisker, words
from gputune.report.pictures import Bars, Mark

STEP, TALL = 36.0, 9.0


def draw(chart: Bars, title: str) -> Markup:
    base = (chart.base,) if chart.base is not None else ()
    scale = scale_of((*values_of(chart.marks), *base), 0, WIDTH - 1, near=True)
    parts: list[str] = []
    for place, mark in enumerate(chart.marks):
        top = place * STEP
        name = f"{mark.name}{', refused' if mark.refused else ''}"
        room = int((WIDTH - 6.3 * len(_number(mark, chart.base))) / 6.7)
        bar = element("rect", x=0, y=top + 18, width=max(1.0, scale(mark.value)), height=TALL, rx=1.5)
        parts.append(
            element(
                "g",
                hint(name, mark, chart.unit),
                words(name, 0, top + 13, "name", max(12, room)),
                words(_number(mark, chart.base), WIDTH, top + 13, "value end"),
                bar,
                whisker(mark, scale, top + 18 + TALL / 2),
                _base(chart.base, scale, top),
                class_=_kind(mark),
            )
        )
    height = len(chart.marks) * STEP
    picked = any(mark.chosen for mark in chart.marks)
    kind = "bars picked" if picked else "bars"
    return picture(f"{title}. {said(chart.marks, chart.unit)}", max(height, 8), parts, kind=kind)


def _base(base: float | None, scale: Scale, top: float) -> str:
    return "" if base is None else element("path", d=f"M{scale(base)} {top + 15:.0f}v15", class_="base")


def _kind(mark: Mark) -> str:
    return f"mark{' chosen' if mark.chosen else ''}{' refused' if mark.refused else ''}"


def _number(mark: Mark, base: float | None) -> str:
    """A value of which 1 is the default has its sign: `3.1x`."""
    sign = TIMES if base is not None else ""
    written = mark.interval and not mark.note  # beside a note there is room only for the whisker
    interval = f" ({number(mark.interval[0])}{TO}{number(mark.interval[1])})" if mark.interval and written else ""
    star = "★ " if mark.chosen else ""
    return f"{star}{number(mark.value)}{sign}{interval}{f' · {mark.note}' if mark.note else ''}"
