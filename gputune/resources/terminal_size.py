"""The variables about a terminal's size."""

from collections.abc import Mapping

NARROWEST, WIDEST = 20, 10_000
"""Characters of a line: in fewer a table cannot be read, and padded to more it fills disks."""
_NAMES = ("COLUMNS", "LINES", "TERMINAL_WIDTH")
"""Those that rich and typer take for sizes."""


def no_sizes(environ: Mapping[str, str]) -> list[str]:
    """The variables about a terminal's size that hold none. With them rich and typer fail, or print nothing."""
    return [name for name in _NAMES if name in environ and not _is_size(environ[name])]


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and NARROWEST <= int(text) <= WIDEST
