"""`--help` of every verb: whole at any width, in plain words, and with examples that gputune takes."""

import re
import shlex
from contextlib import suppress

import pytest
import typer
from command_line import contexts
from forked import gputune
from making import environ

from gputune.cli import _completion_values, _help_text, _pages

PATHS = list(_pages.PAGES)
EXAMPLES = [command for page in _pages.PAGES.values() for command, _ in page.examples]


def shown(monkeypatch, path, width=80):
    monkeypatch.setenv("COLUMNS", str(width))
    return contexts()[path].get_help()


def options(path):
    return [one for one in contexts()[path].command.params if one.param_type_name == "option"]


def spaced(text):
    return " ".join(text.split())


def test_every_verb_has_its_page():
    assert set(contexts()) == set(PATHS)


@pytest.mark.parametrize("path", PATHS)
class TestEachVerb:
    @pytest.mark.parametrize("width", [60, 80, 200])
    def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(self, monkeypatch, path, width):
        text = shown(monkeypatch, path, width)
        assert max(map(len, text.splitlines())) <= min(width, _help_text.WIDEST)
        assert not re.search(r"[ \t]$", text, re.MULTILINE)
        for option in options(path):
            assert re.search(rf"^  (-\w, )?{re.escape(option.opts[-1])}( |$)", text, re.MULTILINE)
            assert spaced(option.help) in spaced(text)
        for paragraph in (contexts()[path].command.help or "").split("\n\n"):
            assert spaced(paragraph) in spaced(text)

    def test_what_stands_for_a_value_is_a_word_and_no_type(self, monkeypatch, path):
        text = shown(monkeypatch, path)
        assert not re.search(r"<|\bbool\b|\brange\b|\bTEXT\b|\bINTEGER\b", text)
        assert all(option.is_flag or option.metavar for option in options(path))

    def test_it_has_two_to_four_examples_and_its_exit_codes(self, monkeypatch, path):
        text = shown(monkeypatch, path)
        commands = [command for command, _ in _pages.PAGES[path].examples]
        assert 2 <= len(commands) <= 4
        assert all(f"\n  {command}\n" in text for command in commands)
        assert re.search(r"^Exit codes:\n(  .*\n)*  2  ", text, re.MULTILINE)

    def test_it_is_plain_text(self, monkeypatch, path):
        text = shown(monkeypatch, path)
        assert text.isascii()
        assert "\x1b" not in text


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_what_the_command_line_takes(example):
    [typed] = re.findall(r"gputune (?:[^|>\")]*)|gputune$", example.split("-- gputune")[0]) or [example]
    path, words = "", shlex.split(typed)[1:]
    while words and words[0] in getattr(contexts()[path].command, "commands", {}):
        path = f"{path} {words.pop(0)}".strip()
    ctx = contexts()[path]
    with suppress(typer.Exit):  # --help
        given = ctx.command.make_context(ctx.info_name, words, parent=ctx.parent).params
        for option in options(path):
            values = _completion_values.of(path, option.opts[-1])
            if given.get(option.name) and values:
                named = [given[option.name]] if isinstance(given[option.name], str) else given[option.name]
                assert {word for text in named for word in text.split(",")} <= {*values(""), "auto"}


def test_the_verbs_are_in_the_order_in_which_they_are_met(monkeypatch):
    text = shown(monkeypatch, "", 60)
    met = re.search(r"Commands:\n((?:  .*\n)+)", text).group(1).splitlines()
    assert [line.split()[0] for line in met] == [
        "check", "probe", "show", "apply", "status", "tune", "batch-size", "pad", "merge", "deploy", "explain",
        "schema", "install-hook", "bug-report",
    ]  # fmt: skip
    assert all(line.endswith(".") for line in met), "each is one line"


@pytest.mark.parametrize(
    ("environment", "styled"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({}, False)],
)
def test_headings_are_bold_only_on_a_terminal_that_has_it(monkeypatch, environment, styled):
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert ("\x1b[1mOptions:\x1b[0m" in contexts()["check"].get_help()) == styled


@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "-1"}, {"COLUMNS": "1"}, {"TERM": ""}]
)
def test_whatever_the_environment_says_it_is_shown(variables):
    done = gputune("apply", "-h", env=environ(**variables))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  --ignore-fingerprint" in done.stdout


@pytest.mark.parametrize("words", [(), ("deploy",), ("deploy", "kubernetes")])
def test_a_group_without_a_verb_shows_its_help_as_wrong_usage(words):
    done = gputune(*words)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.strip() == gputune(*words, "--help").stdout.strip()
