"""A command to copy."""

from __future__ import annotations

import re

from gputune.report.page.markup import Markup, element


def command(text: str, label: str = "") -> Markup:
    """One command. The button, which a script shows, copies the text exactly as it stands here. A line ends between
    words, and not behind one of the hyphens of an option.
    """
    button = element(
        "button", "Copy", type="button", class_="copy scripted", hidden=True, aria_label=f"Copy: {label or text[:80]}"
    )
    words = (element("span", word) if word.strip() else word for word in re.split(r"(\s+)", text))
    return element("div", element("code", *words), button, class_="command")


def remedy(text: str) -> Markup:
    """A check's remedy: the command, which may be copied, apart from what is to be known of it."""
    typed, mark, comment = text.partition("  # ")
    said = element("p", comment, class_="comment") if mark else ""
    return element("div", command(typed), said, class_="remedy")
