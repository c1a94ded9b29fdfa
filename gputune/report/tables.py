"""Tables and charts drawn by rich. Cells are plain text: neither markup nor control characters have an effect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from gputune.host.stderr import no_sizes
from gputune.report.charts import BAR_WIDTH, STAR, Bar, Chart, bar
from gputune.resources.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment
    from rich.table import Table

WIDTH_OF_A_PIPE = 100
"""Columns. In fewer, a reason takes more lines; longer lines are hard to read in a log."""
_FIRST = 22  # the longest name of a check, so that the columns of one report's tables line up


def console_of(stream: IO[str]) -> Console:
    """The one way to draw on a stream: whatever a table holds, it steers nothing, and no line ends in blanks.

    Lines are as wide as the terminal, or as COLUMNS says; if neither is known, `WIDTH_OF_A_PIPE`.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            """Raise for the caller. rich would end the process with an exit code that means something else here."""
            raise BrokenPipeError

        def render(self, renderable: Any, *given: Any, **named: Any) -> Iterator[Segment]:
            for text, style, control in _without_last_blanks(super().render(renderable, *given, **named)):
                yield Segment(text if control else printable(text, keep="\n"), style, control)

    unset = no_sizes(os.environ)
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    is_terminal = stream is not None and stream.isatty()  # a closed stdout is None, and rich prints nothing there
    width = None if is_terminal or "COLUMNS" in environ else WIDTH_OF_A_PIPE
    return Plain(file=stream, width=width, highlight=False, markup=False, emoji=False, _environ=environ)


def _without_last_blanks(segments: Iterable[Segment]) -> Iterator[Segment]:
    from rich.segment import Segment

    held: list[Segment] = []
    for text, style, control in segments:
        if control:
            yield from held
            held = []
            yield Segment(text, style, control)
            continue
        for number, part in enumerate(text.split("\n")):
            if number:
                held = []
                yield Segment("\n")
            words = part.rstrip(" ")
            if words:
                yield from held
                held = []
                yield Segment(words, style)
            if blanks := part[len(words) :]:
                held.append(Segment(blanks, style))


def plain(text: str, style: str = "") -> Any:
    """Text without markup, and with escapes for what cannot be seen, since some of it comes from a file."""
    from rich.text import Text

    return Text(printable(text, keep="\n"), style=style)


def table_of(*columns: str, style: str = "") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(
            column,
            header_style=style or "bold",
            overflow="fold",
            no_wrap=number == 0,
            min_width=_FIRST if style and number == 0 else None,
            max_width=14 if column == "value" else None,
        )
    return table


def add(table: Table, *cells: str) -> None:
    table.add_row(*(plain(cell) for cell in cells))


def draw(console: Console, chart: Chart) -> None:
    from rich.table import Table

    chart = chart.filled()
    console.print()
    star = f" ({STAR} {chart.star})" if chart.star else ""
    console.print(plain(f"{chart.title}{star}", "bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(chart.columns))
    for column in chart.columns:
        table.add_column(
            plain(column), header_style="dim", overflow="fold", justify="right" if column in chart.numbers else "left"
        )
    for row in chart.rows:
        table.add_row(*(_cell(cell, console.encoding) for cell in row))
    console.print(table)


def _cell(cell: str | Bar, encoding: str) -> Any:
    if isinstance(cell, str):
        return plain(cell)
    return plain(bar(cell.value, cell.most, BAR_WIDTH, encoding), "cyan")
