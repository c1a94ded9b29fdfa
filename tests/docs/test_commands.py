"""What the pages tell one to type is read by the real command line, and nothing is run."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pages
import pytest
from command_line import command_line, contexts
from pages import PAGES, ROOT

from gputune import benches, checks, cli, knobs
from gputune.bench_process import BUDGETS
from gputune.knobs import LEVELS


def leaf(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words, behind `gputune`, name, and those that are left for it."""
    command, rest = command_line(), list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return command, rest


def options_of(command: Any) -> set[str]:
    return {option for one in command.params for option in (*one.opts, *one.secondary_opts) if option.startswith("-")}


def closed() -> dict[str, Collection[str]]:
    """The options with a closed set of values, and these."""
    from gputune.cli.apply import FORMS
    from gputune.cli.deploy import KINDS
    from gputune.report.severities import FAIL_ON

    return {"budget": BUDGETS, "numerics": LEVELS, "fail_on": FAIL_ON, "emit": FORMS, "what": KINDS,
            "dtype": ("bfloat16", "float16", "tf32", "float32")}  # fmt: skip


NAMES = {"probe": benches.names, "apply": knobs.names, "tune": knobs.names, "check": checks.names}


def fault(words: list[str]) -> str:
    """What is wrong with a command line, read as the command line reads it; empty where nothing is."""
    command, rest = leaf(words[1:])
    if hasattr(command, "commands"):
        return "" if set(rest) <= options_of(command) else f"no such verb: {rest}"
    try:
        given = command.make_context(command.name, rest).params
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for name, values in closed().items():
        if (value := given.get(name)) is not None and value not in values:
            return f"{name}: {value}"
    for option in ("only", "skip"):
        value = given.get(option) or ""
        named = value if isinstance(value, str) else ",".join(value)
        if wrong := {name for name in named.split(",") if name} - set(NAMES.get(words[1], set)()):
            return f"--{option}: {wrong}"
    device = given.get("device")
    return "" if device is None or re.fullmatch(r"auto|all|cpu|cuda(:\d+)?", device) else f"--device {device}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_to_be_typed_is_a_command(page: Path) -> None:
    assert not {" ".join(words): wrong for words in pages.typed(page.read_text()) if (wrong := fault(words))}


def test_there_are_commands_to_be_typed_and_what_is_none_is_found() -> None:
    assert sum(1 for page in PAGES for _ in pages.typed(page.read_text())) > 30
    for words in ("prove", "probe --budget fast", "probe --only matmuls", "probe --device gpu", "batch-size"):
        assert fault(["gputune", *words.split()]), words


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("gputune check | less", [["gputune", "check"]]),
        ("cd /tmp && .venv/bin/gputune probe -o a.yaml", [[".venv/bin/gputune", "probe", "-o", "a.yaml"]]),
        ('eval "$(gputune apply profile.yaml)"   # all of it', [["gputune", "apply", "profile.yaml"]]),
        ("A=0 gputune apply a -- gputune status", [["gputune", "apply", "a", "--", "gputune", "status"],
                                                   ["gputune", "status"]]),
        ("gputune deploy docker --image mine > file", [["gputune", "deploy", "docker", "--image", "mine"]]),
        ("docker run gputune python3 train.py", []),
    ],
)  # fmt: skip
def test_commands_are_found_in_a_script(script: str, found: list[list[str]]) -> None:
    assert list(pages.typed(f"```sh\n{script}\n```\n")) == found
    assert list(pages.typed(f"```console\n$ {script}\ngputune check was not typed\n```\n")) == found


def test_a_command_of_several_lines_is_one() -> None:
    assert list(pages.typed("```sh\ngputune check \\\n  --json\n```\n")) == [["gputune", "check", "--json"]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_named_in_a_sentence_exists(page: Path) -> None:
    """The verb and the options of `gputune ...` between backticks, whatever their values."""
    wrong = []
    for span in pages.code_spans(page.read_text()):
        words = span.split()
        if words[0] != "gputune" or len(words) == 1 or (page.name == "CHANGELOG.md" and cli.REMOVED.keys() & words):
            continue
        command, rest = leaf([word for word in words[1:] if word != "VERB"])
        own = " ".join(rest).split(" -- ")[0]
        known = options_of(command) | {"--help", "-h", "--version", "--debug"}
        if hasattr(command, "commands") and rest and not rest[0].startswith(("-", "[", ".")):
            wrong.append(span)
        elif unknown := set(re.findall(r"(?<!\S)\[?(--?[a-z][a-z-]*)", own)) - known:
            wrong.append(f"{span}: {unknown}")
    assert not wrong


REFERENCE = (ROOT / "docs" / "reference.md").read_text()


@pytest.mark.parametrize("name", [name for name, one in contexts().items() if not hasattr(one.command, "commands")])
def test_every_verb_and_option_is_listed_and_no_other(name: str) -> None:
    command = contexts()[name].command
    section = re.search(rf"^### `gputune {name}`\n(.*?)(?=^##)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert section, f"docs/reference.md has no heading for gputune {name}"
    listed = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", " ".join(pages.code_spans(section[1]))))
    shared = {"--help", "-h"}
    assert listed - shared - OF_OTHERS.get(name, set()) == options_of(command) - shared


OF_OTHERS = {"apply": set[str](), "install-hook": {"-I", "-E"}}
"""Options that a verb's section names and that are another program's."""
