"""What all pictures are made of: the frame with what a screen reader says, texts, whiskers and ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gputune.report.charts import number
from gputune.report.page.markup import Markup, element
from gputune.report.page.scale import WIDTH, Scale
from gputune.report.pictures import Mark

MOST_SAID = 12
"""The most values that a picture's name for screen readers has; the table below the pictures has all of them."""


def picture(name: str, height: float, parts: Iterable[str], *, kind: str = "") -> Markup:
    """An image of that name. Its size follows the page's width."""
    box = f"0 0 {WIDTH:.0f} {height:.0f}"
    return element("svg", *parts, class_=f"picture {kind}".strip(), role="img", aria_label=name, viewBox=box)


def said(marks: Sequence[Mark], unit: str) -> str:
    """The marks in words."""
    words = [f"{mark.name} {value_text(mark)}{', recommended' if mark.chosen else ''}" for mark in marks[:MOST_SAID]]
    more = f"; and {len(marks) - MOST_SAID} more, in the table" if len(marks) > MOST_SAID else ""
    return f"{unit}: {'; '.join(words)}{more}"


def value_text(mark: Mark) -> str:
    """The value with its interval and note, as `12.8 (12.6 to 13.0), 3 ms`."""
    interval = f" ({number(mark.interval[0])} to {number(mark.interval[1])})" if mark.interval else ""
    return f"{number(mark.value)}{interval}{f', {mark.note}' if mark.note else ''}"


def hint(name: str, mark: Mark, unit: str) -> Markup:
    """What a pointer that rests on a mark, or the keyboard, shows."""
    return element("title", f"{name}: {value_text(mark)} {unit}")


def words(text: str, x: float, y: float, kind: str = "", longest: int = 48) -> Markup:
    """A text, cut where it would leave the picture."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return element("text", shown, x=x, y=y, class_=kind or None)


def whisker(mark: Mark, scale: Scale, y: float) -> Markup:
    """The interval, with an end at either side."""
    if mark.interval is None:
        return Markup("")
    low, high = sorted(scale(value) for value in mark.interval)
    path = f"M{low} {y - 3}v6M{low} {y}H{high}M{high} {y - 3}v6"
    return element("path", d=path, class_="whisker")


def ticks(scale: Scale, top: float, bottom: float) -> list[Markup]:
    """Upright lines through a picture, with their numbers below; those that would touch are left out."""
    parts: list[Markup] = []
    last = -100.0
    for value in scale.ticks():
        x = scale(value)
        parts.append(element("path", d=f"M{x} {top}V{bottom}", class_="grid"))
        if x - last >= 30:
            parts.append(words(tick_text(value), x, bottom + 13, "tick middle"))
            last = x
    return parts


def tick_text(value: float) -> str:
    """A number for an axis: `0.5`, `250`, `15k`, `2M`."""
    for least, factor, sign in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if least <= value < 1e12:
            return f"{value / factor:.4g}{sign}"
    return f"{value:.4g}"
