"""`--help` of every verb: in plain words, whole, and with examples that gputune takes."""

import ast
import re
import shlex
from contextlib import suppress
from pathlib import Path

import pytest
import typer
from command_line import contexts
from forked import gputune
from making import environ

from gputune import __version__, cli

PATHS = list(contexts())


def shown(monkeypatch, path, width=80):
    monkeypatch.setenv("COLUMNS", str(width))
    return contexts()[path].get_help()


def options(path):
    return [one for one in contexts()[path].command.params if one.param_type_name == "option"]


def examples(path):
    return re.findall(r"^  ((?:gputune|eval) .*?)(?:  # .*)?$", contexts()[path].command.epilog, re.MULTILINE)


@pytest.mark.parametrize("path", PATHS)
class TestEachVerb:
    @pytest.mark.parametrize("width", [60, 80, 200])
    def test_every_option_is_explained_and_no_word_is_cut(self, monkeypatch, path, width):
        text = shown(monkeypatch, path, width)
        for option in options(path):
            assert re.search(rf"^  (-\w, )?{re.escape(option.opts[-1])}( |$)", text, re.MULTILINE)
            assert option.help
            assert option.is_flag or option.metavar
        assert text.isascii()
        assert "\x1b" not in text

    def test_it_has_two_to_four_examples_and_its_exit_codes(self, monkeypatch, path):
        text = shown(monkeypatch, path)
        assert 2 <= len(examples(path)) <= 5
        assert all(f"\n    {command}" in text for command in examples(path))
        assert re.search(r"Exit codes:(.*\n)*.*\b2\b", text)


@pytest.mark.parametrize("example", [example for path in PATHS for example in examples(path)])
def test_an_example_is_what_the_command_line_takes(example):
    [typed] = re.findall(r"gputune (?:[^|>\")]*)|gputune$", example.split("-- gputune")[0]) or [example]
    path, words = "", shlex.split(typed)[1:]
    while words and words[0] in getattr(contexts()[path].command, "commands", {}):
        path = f"{path} {words.pop(0)}".strip()
    ctx = contexts()[path]
    with suppress(typer.Exit):  # --help
        ctx.command.make_context(ctx.info_name, words, parent=ctx.parent)


def test_the_verbs_are_in_the_order_in_which_they_are_met(monkeypatch):
    text = shown(monkeypatch, "", 80)
    met = re.search(r"Commands:\n((?:  .*\n)+)", text).group(1).splitlines()
    assert [line.split()[0] for line in met] == list(cli.VERBS)
    assert all(line.endswith(".") and not line.endswith("...") for line in met), "each is one line"


@pytest.mark.parametrize("path", sorted(Path(cli.__file__).parent.rglob("*.py")), ids=lambda path: path.name)
def test_an_option_whose_metavar_is_its_name_in_capitals_is_named(path):
    """typer 0.27 names it in capitals otherwise."""
    aliases = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            aliases[node.targets[0].id] = ast.unparse(node.value)
        if isinstance(node, ast.arg) and node.annotation is not None:
            said = ast.unparse(node.annotation)
            said = aliases.get(said, said)
            if f"'{node.arg.upper()}'" in said and "Argument(" not in said:
                assert f"'--{node.arg}'" in said, node.arg


def test_the_version():
    assert gputune("--version").stdout == f"{__version__}\n"


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "-1"}, {"COLUMNS": "1"}])
def test_whatever_the_environment_says_it_is_shown(variables):
    done = gputune("apply", "-h", env=environ(**variables))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  --ignore-fingerprint" in done.stdout


@pytest.mark.parametrize("words", [(), ("deploy",), ("deploy", "kubernetes")])
def test_a_group_without_a_verb_shows_its_help_as_wrong_usage(words):
    done = gputune(*words)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.strip() == gputune(*words, "--help").stdout.strip()
