"""The type of a chart, and the parts of all charts: the rows they read, bars, numbers, and ratios with their intervals.

Charts are data, which `tables` draws: so they are tested without a terminal. Rows of a file may be of another
version, or made up: those that lack what a chart needs are left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gputune.measurement import Measurement

BAR_WIDTH = 12
"""Characters of the longest bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LARGEST = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value beside `most`, the longest of its chart."""

    value: float
    most: float


Cell = str | Bar
STAR = "*"
"""A cell that marks the row which is recommended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One value, and the interval at 99 % that it lies in, where one is known."""

    name: str = ""
    """Of the series; empty where a row has a single value."""
    value: float
    interval: tuple[float, float] | None = None
    note: str = ""
    """What else is known of it, such as the milliseconds behind a ratio."""
    chosen: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What a page draws of a chart: a bar for each row with a single value, or else a dot for each series."""

    name: str = ""
    unit: str
    rows: Mapping[str, tuple[Mark, ...]]
    base: float | None = None
    """What bars are held against, such as 1 for ratios."""


def bars(unit: str, rows: Mapping[str, Measurement], name: str = "") -> Picture:
    return Picture(name=name, unit=unit, rows={key: (mark(row),) for key, row in rows.items()})


def mark(row: Measurement, name: str = "", factor: float = 1.0) -> Mark:
    """A row's median with its interval, times a factor for another unit."""
    low, high = row.interval or (0.0, 0.0)
    return Mark(name=name, value=row.median * factor, interval=(low * factor, high * factor) if row.interval else None)


def ratio_mark(row: Measurement, base: Measurement | None, note: str = "") -> Mark | None:
    """How many times as fast as `base` a row is; None where they cannot be compared."""
    if row is base:
        return Mark(value=1.0, note=note)
    compared = row.against(base) if base else None
    return Mark(value=compared.ratio, interval=compared.interval, note=note) if compared else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A title, and below it lines of cells under the names of their columns, if they have names."""

    title: str
    star: str = ""
    """What the rows marked with `STAR` are; empty where a chart has no such mark."""
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    numbers: tuple[str, ...] = ()
    """The columns that are aligned to the right."""
    pictures: tuple[Picture, ...] = ()
    """What a page draws of it, with intervals; nothing where the table says all."""

    def filled(self) -> "Chart":
        """The chart without its empty columns, such as a CPU's clock."""
        kept = [place for place in range(len(self.columns)) if any(line[place] != "" for line in self.rows)]
        columns = tuple(self.columns[place] for place in kept)
        return replace(self, columns=columns, rows=[tuple(line[place] for place in kept) for line in self.rows])


def bar(value: float, most: float, width: int, encoding: str = "utf-8") -> str:
    """`value` as a bar of blocks, to an eighth of a character, or of `#` where the encoding has no blocks.

    The bar of `most` is `width` characters long. Every value above zero is visible; nothing is longer than `width`.
    """
    if not (value > 0 and most > 0):
        return ""
    eighths = max(1, round(min(1.0, value / most) * width * 8))
    if not _writable(encoding):
        return "#" * max(1, round(eighths / 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _writable(encoding: str) -> bool:
    try:
        _EIGHTHS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def rows(measurements: Iterable[Measurement], of: str, texts: str = "", counts: str = "") -> list[Measurement]:
    """The rows of a bench and metric (`conv throughput`) whose params hold all of `texts` as text and all of `counts`
    as numbers above zero. A rate, time or size is above zero too; a loss may be anything.
    """
    bench, metric = of.split()
    return [
        row
        for row in measurements
        if (row.bench, row.metric) == (bench, metric)
        and (row.median > 0 or metric == "final_loss")
        and all(isinstance(row.params.get(name), str) for name in texts.split())
        and all(_is_count(row.params.get(name)) for name in counts.split())
    ]


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LARGEST


def number(value: float) -> str:
    """A number with three significant digits, or with all digits before the point where those are more."""
    return f"{value:.0f}" if 999.5 <= value < 1e7 else f"{value:#.3g}".rstrip(".")


def rate(row: Measurement) -> str:
    """A row's median, with its interval where there are enough samples for one."""
    return number(row.median) + _range(row.interval)


def ratio(row: Measurement, base: Measurement | None) -> str:
    """How many times as fast as `base` a row is, with the interval; empty where they cannot be compared."""
    if row is base:
        return "1x"
    compared = row.against(base) if base else None
    return f"{number(compared.ratio)}x{_range(compared.interval)}" if compared else ""


def _range(interval: tuple[float, float] | None) -> str:
    return f" ({number(interval[0])}-{number(interval[1])})" if interval else ""
