"""The rows of `tuning.applied` and `gputune.status()`: a tuple to code, and a table where they are printed."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap

from gputune.knobs import Value, value_text
from gputune.live.applied import Applied, Reason, Why
from gputune.resources.printable import printable

WIDTH = 80
_COLUMNS = {"setting": 29, "before": 8, "after": 8, "status": 13}
"""The most characters of each column but the last one, `why`, which has what they leave."""
_LEAST_WHY = 20
_NARROW_STATUS = len("kept-user")
"""With the longest settings' names `changed-later` is broken at its hyphen."""
_GAP = "  "
_MOST_LINES = 5
"""What takes more lines is cut here; the row itself has all of it."""


class Rows(tuple[Applied, ...]):
    """What became of each setting. Printed, it is a table of 80 columns, below which stands what was skipped, those of
    the same reason together; of settings at torch's default only the number is told.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(_lines(self)) or "gputune applied no setting in this process"


def _lines(rows: Sequence[Applied]) -> Iterator[str]:
    skipped: dict[tuple[Why | str, ...], list[str]] = {}
    for row in rows:
        if row.status == "skipped":
            skipped.setdefault(row.reasons, []).append(row.setting)
    at_default = len(skipped.pop((Reason.DEFAULT(),), ()))
    shown = [row for row in rows if row.status != "skipped"]
    if shown:
        yield from _table(shown)
    for reasons, names in skipped.items():
        yield from _wrapped(f"{', '.join(names)}: skipped, {'; '.join(map(str, reasons))}", WIDTH, indent=_GAP)
    if at_default:
        more = " more" if shown or skipped else ""
        yield f"{at_default}{more} {'is' if at_default == 1 else 'are'} at torch's default"


def _table(rows: Sequence[Applied]) -> Iterator[str]:
    cells = [(*_COLUMNS, "why"), *map(_cells, rows)]
    widths = [min(most, max(len(row[number]) for row in cells)) for number, most in enumerate(_COLUMNS.values())]
    left = WIDTH - len(_GAP) * len(widths)
    if left - sum(widths) < _LEAST_WHY:
        widths[-1] = min(widths[-1], _NARROW_STATUS)
    widths.append(left - sum(widths))
    for row in cells:
        columns = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*columns, fillvalue=""):
            yield _GAP.join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()


def _cells(row: Applied) -> tuple[str, ...]:
    return tuple(map(printable, (row.setting, _value(row.before), _value(row.after), row.status, row.why)))


def _value(value: Value) -> str:
    if isinstance(value, dict):
        return f"{len(value)} values"
    return "" if value is None else value_text(value)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    lines = wrap(printable(text), width, max_lines=_MOST_LINES, placeholder=" ...", subsequent_indent=indent)
    return [line.rstrip() for line in lines]  # a space stays before a word that is broken
