"""The text of `--help`: never wider than the terminal, and no option, word or example is cut to fit it."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any

import typer

from gputune.cli import _pages

WIDEST, NARROWEST = 100, 40
"""Characters of a line: longer ones are hard to read, and in shorter ones no help fits beside an option."""
INDENT = "  "
LONGEST_TERM = 26


def text(ctx: Any) -> str:
    """The whole help of the verb or group of a context."""
    width = min(max(shutil.get_terminal_size((80, 24)).columns, NARROWEST), WIDEST)
    page = _pages.PAGES[_pages.path(ctx)]
    parts = [
        "\n".join(_wrapped(f"Usage: {usage(ctx)}", width, "", " " * 7)),
        *("\n".join(_wrapped(paragraph, width)) for paragraph in (ctx.command.help or page.short).split("\n\n")),
    ]
    if commands := _commands(ctx):
        parts.append(_section("Commands", _columns(commands, width)))
    arguments = [(_name(one), one.help) for one in ctx.command.params if _is_argument(one) and one.help]
    if arguments:
        parts.append(_section("Arguments", _columns(arguments, width)))
    options = [one for one in ctx.command.get_params(ctx) if not _is_argument(one)]
    parts.append(_section("Options", _columns([(_term(one), _explained(one)) for one in options], width)))
    parts.append(_section("Examples", _examples(page.examples, width)))
    parts.append(_section("Exit codes", _columns(page.exit_codes, width)))
    return "\n\n".join(parts)


def usage(ctx: Any) -> str:
    """How the verb is typed: what it needs by name, and that it has options."""
    needed = [f"{one.opts[-1]} {one.metavar}" for one in ctx.command.params if not _is_argument(one) and one.required]
    arguments = [_name(one) for one in ctx.command.params if _is_argument(one)]
    rest = ["COMMAND ..."] if hasattr(ctx.command, "commands") else arguments
    return " ".join([ctx.command_path, *needed, "[OPTIONS]", *rest])


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _name(argument: Any) -> str:
    """An argument as it stands in the usage: in brackets where it may be left out."""
    name = argument.metavar or argument.name.upper()
    return f"[{name}]" if not argument.required and name[0] not in "[-" else name


def _commands(ctx: Any) -> list[tuple[str, str]]:
    if not hasattr(ctx.command, "commands"):
        return []
    path = _pages.path(ctx)
    return [(verb, _pages.PAGES[f"{path} {verb}".strip()].short) for verb in ctx.command.list_commands(ctx)]


def _term(option: Any) -> str:
    """The names of an option, the short one first, and what stands for its value."""
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def _explained(option: Any) -> str:
    shown = option.show_default
    default = shown if isinstance(shown, str) else option.default if shown and not option.is_flag else None
    notes = ["required"] if option.required else [] if default in (None, "", ()) else [f"default: {default}"]
    return " ".join([option.help or "", *(f"[{note}]" for note in notes)])


def _columns(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Terms on the left and their text on the right; a long term has a line to itself."""
    rows = list(rows)
    longest = min(max(len(term) for term, _ in rows), LONGEST_TERM, width // 2 - 4)
    behind = " " * (len(INDENT) + longest + 2)
    for term, words in rows:
        lines = _wrapped(words, width, behind, behind)
        if len(term) <= longest:
            yield f"{INDENT}{term:{longest}}  {lines[0].lstrip()}"
            yield from lines[1:]
        else:
            yield f"{INDENT}{term}"
            yield from lines


def _examples(examples: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Each on a line to be copied, below a comment of the shell's."""
    for command, purpose in examples:
        yield from _wrapped(purpose, width, f"{INDENT}# ", f"{INDENT}# ")
        yield f"{INDENT}{command}"


def _wrapped(words: str, width: int, first: str = "", then: str = "") -> list[str]:
    return wrap(
        " ".join(words.split()), width, initial_indent=first, subsequent_indent=then,
        break_long_words=False, break_on_hyphens=False,
    ) or [""]  # fmt: skip


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join([_heading(f"{title}:"), *lines])


def _heading(title: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return title if plain or sys.stdout is None or not sys.stdout.isatty() else typer.style(title, bold=True)
