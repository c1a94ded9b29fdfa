"""Charts drawn on streams."""

import io
from dataclasses import replace

import pytest

from gputune.report.charts import Bar, Chart
from gputune.report.tables import add, console_of, draw, table_of
from gputune.resources.printable import printable

CHART = Chart(
    title="speeds", columns=("dtype", "", "TFLOP/s"), numbers=("TFLOP/s",),
    rows=[("tf32", Bar(value=50, most=100), "50.0"), ("bfloat16", Bar(value=100, most=100), "100")],
)  # fmt: skip


def drawn(chart, encoding="utf-8"):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    draw(console_of(stream), chart)
    stream.flush()
    return raw.getvalue().decode(encoding).splitlines()


def test_a_chart_is_a_title_and_lines_under_their_columns():
    assert drawn(CHART) == [
        "",
        "speeds",
        "dtype                   TFLOP/s",
        "tf32      ██████           50.0",
        "bfloat16  ████████████      100",
    ]


def test_a_stream_that_cannot_hold_blocks_gets_number_signs():
    assert drawn(CHART, "ascii")[3:] == ["tf32      ######           50.0", "bfloat16  ############      100"]


def test_columns_without_names_have_no_line_of_names():
    assert drawn(Chart(title="copies", columns=("", ""), rows=[("pinned", "55")])) == ["", "copies", "pinned  55"]


@pytest.mark.parametrize("hostile", ["[/foo] x", "\x1b[2J\x1b]52;c;aGk=\x07", "[link=file:///]x[/link]", "[red]"])
def test_text_is_shown_as_it_is_and_steers_nothing(hostile):
    text = "\n".join(drawn(Chart(title=hostile, columns=(hostile,), rows=[(hostile,)])))
    assert text.count(printable(hostile)) == 3
    assert "\x1b" not in text


def table(stream):
    made = table_of("setting", "value", "why")
    add(made, "amp_dtype", "float32 1, bfloat16 8, float16 8", "since " + "word " * 60)
    console_of(stream).print(made)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("columns", "widest"), [("80", 80), ("120", 120), (None, 100)])
def test_a_line_in_a_pipe_has_100_columns_unless_columns_says_otherwise(monkeypatch, columns, widest):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    table(stream)
    assert max(map(len, stream.getvalue().splitlines())) in (widest, widest - 1)


@pytest.mark.parametrize("made", [io.StringIO, Terminal])
def test_no_line_ends_in_blanks(monkeypatch, made):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    stream = made()
    table(stream)
    draw(console_of(stream), replace(CHART, columns=("dtype", "", "")))
    assert "tf32" in stream.getvalue()
    assert not [line for line in stream.getvalue().splitlines() if line != line.rstrip()]
