"""A chart as a figure: its pictures, and below them the table with all numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gputune.report.charts import Bar, Cell, Chart, Picture
from gputune.report.page.drawing import draw
from gputune.report.page.markup import Markup, element, joined

TALL = 10
"""From how many rows on a picture is as high as two others."""


def figure(chart: Chart) -> Markup:
    chart = without_bars(chart.filled())
    panels = [_panel(one, chart.title) for one in chart.pictures if one.rows]
    numbers = scrolled(table(chart.columns, chart.rows, chart.numbers), f"The numbers of: {chart.title}")
    if not panels:
        return element("figure", element("figcaption", chart.title), numbers, class_="chart")
    return element(
        "figure",
        element("figcaption", chart.title),
        element("div", *panels, class_="pictures"),
        folded("The numbers", numbers),
        class_="chart single" if len(panels) == 1 else "chart",
    )


def _panel(picture: Picture, title: str) -> Markup:
    whole = f"{title}: {picture.name}" if picture.name else title
    name = element("p", picture.name, class_="panel-name") if picture.name else ""
    return element("div", name, draw(picture, whole), class_="panel tall" if len(picture.rows) >= TALL else "panel")


def without_bars(chart: Chart) -> Chart:
    """Bars are a terminal's pictures."""
    drawn = {place for row in chart.rows for place, cell in enumerate(row) if isinstance(cell, Bar)}
    kept = [place for place in range(len(chart.columns)) if place not in drawn]
    return Chart(
        title=chart.title,
        columns=tuple(chart.columns[place] for place in kept),
        rows=[tuple(row[place] for place in kept if place < len(row)) for row in chart.rows],
        numbers=chart.numbers,
        pictures=chart.pictures,
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], numbers: Sequence[str] = ()) -> Markup:
    """A table; one whose columns have no names has no head."""
    right = ["number" if name in numbers else None for name in columns]
    heads = [
        element("th", name, scope="col", class_=kind) if name else element("td")
        for name, kind in zip(columns, right, strict=True)
    ]
    body = [
        element("tr", *(element("td", str(cell), class_=kind) for cell, kind in zip(row, right, strict=False)))
        for row in rows
    ]
    head = element("thead", element("tr", *heads)) if any(columns) else ""
    return element("table", head, element("tbody", *body))


def scrolled(inner: Markup, name: str) -> Markup:
    """What may be wider than the page moves in a frame of its own, by keyboard too."""
    return element("div", inner, class_="scroll", role="region", aria_label=name, tabindex=0)


def folded(summary: str, *inner: str, kind: str = "numbers") -> Markup:
    """Open where no script closes it."""
    return element("details", element("summary", summary), joined(inner), class_=kind, open=True)
