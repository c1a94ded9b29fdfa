"""Text on lines of a given width, measured in a terminal's cells: wrapped, cut short, or listed as far as there is
room. Commands are never cut: they go on behind a backslash, as a shell reads them.
"""

import re
from collections.abc import Iterator, Sequence

from gputune.host.stderr import one_line
from gputune.resources.printable import quoted

INDENT = "    "
CUT = "..."
MOST_NAMES = 500
_SAFE = re.compile(r"[\w./:,@%+=-]+", re.ASCII)
"""A word that a shell takes as it stands, so that a line break behind a backslash may stand in it."""


def wrap(text: str, width: int, indent: str = INDENT) -> list[str]:
    """The words of a text on lines, those after the first indented. A word that fits on no line is broken."""
    lines, words = [""], one_line(text).split(" ")
    for word in words:
        line = f"{lines[-1]} {word}" if lines[-1].strip() else f"{lines[-1]}{word}"
        if fits(line, width):
            lines[-1] = line
            continue
        *whole, last = _broken(word, max(1, width - len(indent)))
        lines += [indent + part for part in (*whole, last)]
    return [line for line in lines if line.strip()]


def fits(line: str, width: int) -> bool:
    return cells(line) <= width


def cut(text: str, width: int) -> str:
    """A text on one line, with its indent, and `...` for what has no room."""
    line = text[: len(text) - len(text.lstrip(" "))] + one_line(text)
    if fits(line, width):
        return line
    return next(_broken(line, max(1, width - len(CUT)))).rstrip(" .") + CUT


def shortened(text: str, width: int, sign: str = CUT) -> str:
    """A text on one line, its middle cut out for a sign: what tells names apart mostly stands at their ends."""
    line = one_line(text)
    if fits(line, width):
        return line
    room = max(2, width - len(sign))
    begins, ends = (next(_broken(part, room // 2)) for part in (line, line[::-1]))
    return f"{begins.rstrip()}{sign}{ends[::-1].lstrip()}"


def told_apart(names: Sequence[str], width: int, sign: str = CUT) -> dict[str, str]:
    """Each name shortened. Those that would then be the same are shown from where they differ on."""
    short = {name: shortened(name, width, sign) for name in names}
    for shown in set(short.values()):
        same = [name for name in short if short[name] == shown]
        begins = max(count for count in range(len(same[0]) + 1) if len({name[:count] for name in same}) == 1)
        if len(same) > 1:
            short |= {name: shortened(sign + name[begins:], width, sign) for name in same}
    return short


def clipped(text: str, width: int, most: int) -> list[str]:
    """A text on at most so many lines, with `...` for what has no room."""
    lines = wrap(text, width)
    return lines if len(lines) <= most else [*lines[: most - 1], cut(f"{lines[most - 1]} {CUT}", width)]


def listed(title: str, names: Sequence[str], width: int, most: int = 1) -> list[str]:
    """`title a, b and 3 more` on at most so many lines; nothing without names."""
    if not names:
        return []
    for count in range(min(len(names), MOST_NAMES), 0, -1):
        rest = f" and {len(names) - count} more" if count < len(names) else ""
        lines = wrap(f"{title} {', '.join(names[:count])}{rest}", width)
        if len(lines) <= most:
            return lines
    first = names[0] if len(names) == 1 else f"{len(names)}, as {names[0]}"
    return clipped(f"{title} {first}", width, most)


def command(words: Sequence[str], width: int, comment: str = "") -> list[str] | None:
    """A command as a shell reads it, with a comment where that has room. None where it cannot be broken into lines, or
    typed at all in this locale's encoding.
    """
    try:
        typed = [quoted(word) for word in words]
    except UnicodeEncodeError:
        return None
    whole = INDENT + " ".join(typed)
    if "\n" in whole:
        return None
    if fits(whole, width):
        remark = f"{whole}  # {comment}"
        return [remark if comment and fits(remark, width) else whole]
    return _on_lines(typed, width)


def _on_lines(typed: Sequence[str], width: int) -> list[str] | None:
    lines = [INDENT + typed[0]]
    for word in typed[1:]:
        if fits(f"{lines[-1]} {word}", width - 2):
            lines[-1] += f" {word}"
        elif fits(INDENT * 2 + word, width - 2):
            lines.append(INDENT * 2 + word)
        elif _SAFE.fullmatch(word):
            *parts, last = _broken(word, width - 2 * len(INDENT) - 2)
            lines += [(INDENT * 2 if number == 0 else "") + part + "\\" for number, part in enumerate(parts)]
            lines.append(last)
        else:
            return None
    return [line if line.endswith("\\") else f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _broken(word: str, width: int) -> Iterator[str]:
    part, used = "", 0
    for char in word:
        taken = cells(char)
        if part and used + taken > width:
            yield part
            part, used = "", 0
        part, used = part + char, used + taken
    yield part


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
