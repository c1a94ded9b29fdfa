"""Tables and charts drawn by rich, as plain text: brackets are brackets, and nothing in a cell steers the terminal."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from gputune.report.charts import BAR_WIDTH, Bar, Chart, bar
from gputune.settings import Value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_FIRST = 22  # the longest name of a check, so that the tables of one report stand under each other


def console_of(stream: IO[str]) -> Console:
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            """Let the caller know; rich would end the process, with a code that means something else here."""
            raise BrokenPipeError

    return Plain(file=stream, highlight=False)


def plain(text: str, style: str = "") -> Any:
    """Text in which brackets are brackets and nothing steers the terminal: some of it comes from a file."""
    from rich.text import Text

    return Text("".join(char if char.isprintable() or char == "\n" else "?" for char in text), style=style)


def table_of(*columns: str, style: str = "") -> Table:
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        made.add_column(
            column,
            header_style=style or "bold",
            overflow="fold",
            no_wrap=number == 0,
            min_width=_FIRST if style and number == 0 else None,
            max_width=14 if column == "value" else None,
        )
    return made


def add(table: Table, *cells: str) -> None:
    """A row of plain text."""
    table.add_row(*(plain(cell) for cell in cells))


def value_text(value: Value) -> str:
    """A setting's value in a word or two; none for torch's own choice."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "unknown"
    if value is None:
        return "none"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def draw(console: Console, chart: Chart) -> None:
    """A chart below an empty line."""
    from rich.table import Table

    chart = chart.filled()
    console.print()
    console.print(plain(chart.title, "bold"))
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(chart.columns))
    for column in chart.columns:
        made.add_column(
            plain(column), header_style="dim", overflow="fold", justify="right" if column in chart.numbers else "left"
        )
    for row in chart.rows:
        made.add_row(*(_cell(cell, console.encoding) for cell in row))
    console.print(made)


def _cell(cell: str | Bar, encoding: str) -> Any:
    if isinstance(cell, str):
        return plain(cell)
    return plain(bar(cell.value, cell.most, BAR_WIDTH, encoding), "cyan")
