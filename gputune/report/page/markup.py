"""HTML whose text is escaped by construction: what is no `Markup` yet becomes text, and can become nothing else."""

from collections.abc import Iterable
from html import escape

from gputune.resources.printable import printable

TIMES, TO, NOTHING = "\u00d7", "\u2013", "\u2013"
"""The signs between numbers, and where there is none."""
VOID = ("meta", "link", "input", "br")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Text for a page: with escapes for what cannot be seen, and for what HTML would read as its own."""
    return text if isinstance(text, Markup) else Markup(escape(printable(text, keep="\n")))


def element(tag: str, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element. An attribute `aria_label` becomes `aria-label`, `class_` `class`; None and False are left out."""
    given = "".join(
        _attribute(name, value) for name, value in attributes.items() if value is not None and value is not False
    )
    if tag in VOID:
        return Markup(f"<{tag}{given}>")
    return Markup(f"<{tag}{given}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str]) -> Markup:
    return Markup("".join(map(escaped, parts)))


def _attribute(name: str, value: str | float | bool) -> str:
    key = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {key}"
    shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escaped(str(value))
    return f' {key}="{shown}"'
