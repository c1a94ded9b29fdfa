"""The pages that people read, taken apart: their code blocks, links, anchors, and the words that they tell one to type.

Pure, but for the list of pages.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted(ROOT.glob("docs/*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS, *sorted(ROOT.glob("examples/**/*.md"))]

_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
_OPERATORS = "|&;<>"


def blocks(text: str, *languages: str) -> list[str]:
    """The fenced blocks of these languages."""
    return [body for _, language, body in _FENCED.findall(text) if language in languages]


def prose(text: str) -> str:
    """The text without its fenced blocks."""
    return _FENCED.sub("", text)


def code_spans(text: str) -> list[str]:
    """What stands between backticks in the prose, each on one line."""
    return [" ".join(body.split()).replace("\\|", "|") for _, body in _CODE.findall(prose(text))]


def links(text: str) -> list[str]:
    """The targets of the links in the prose."""
    return _LINK.findall(_CODE.sub("code", prose(text)))


def anchors(text: str) -> set[str]:
    """The anchors of the headings, by GitHub's rule: small letters, no punctuation, hyphens for blanks, a number for a
    heading that comes again.
    """
    found: list[str] = []
    for title in re.findall(r"^#+ +(.+?) *#*$", prose(text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = sum(re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one) is not None for one in found)
        found.append(f"{slug}-{count}" if count else slug)
    return set(found)


def typed(text: str) -> Iterator[list[str]]:
    """Each `gputune` command line of the blocks for a shell, as words; in a console's those behind the prompt."""
    for block in blocks(text, "sh"):
        yield from _commands(block)
    for block in blocks(text, "console"):
        lines = block.replace("\\\n", " ").splitlines()
        yield from _commands("\n".join(line[2:] for line in lines if line.startswith("$ ")))


def _commands(script: str) -> Iterator[list[str]]:
    for line in script.replace("\\\n", " ").splitlines():
        for words in _split(line):
            yield from _of_gputune(words)


def _split(line: str) -> list[list[str]]:
    """The simple commands of a line of a shell script."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(_OPERATORS):
            commands.append([])
        else:
            commands[-1].append(word)
    return commands


def _of_gputune(words: Sequence[str]) -> Iterator[list[str]]:
    """The command without the variables before it, if it is gputune's; those inside its words, and behind its `--`."""
    for word in words:
        for inner in re.findall(r"\$\((.*)\)", word):
            yield from _commands(inner)
    rest = list(words)
    while rest and re.fullmatch(r"\w+=.*", rest[0]):
        del rest[0]
    if rest and Path(rest[0]).name == "gputune":
        yield rest
        if "--" in rest:
            yield from _of_gputune(rest[rest.index("--") + 1 :])
