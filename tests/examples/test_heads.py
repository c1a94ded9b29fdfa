"""The examples as files: each compiles, is short, and begins with the commands to type, which gputune understands."""

import ast
import re

import pytest
from printed import COMMANDS, EXAMPLES, text
from understood import parsed

SCRIPTS = sorted(EXAMPLES.glob("*.py"))
README = (EXAMPLES / "README.md").read_text()


def commands(words: str) -> list[str]:
    return re.findall(r"^ *(gputune .*)$", words, re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_begins_with_the_commands_to_type(script):
    source = script.read_text()
    tree = ast.parse(source)
    head = ast.get_docstring(tree)
    [tune, apply] = [parsed(line) for line in commands(head) if not line.endswith(" check")]
    assert str(tune["output"]) == apply["profile"] == "profile.yaml"
    assert ["--", *tune["command"]] == apply["command"]
    assert tune["command"][-1] == script.name
    assert len(source.splitlines()) <= 130
    assert "--large" in head
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert "gputune" not in imported - ({"gputune"} if script.stem == "ddp" else set()), "it is a script of anybody's"


def test_a_command_that_gputune_does_not_understand_is_noticed():
    with pytest.raises(KeyError):
        parsed("gputune tun -- python classifier.py")
    with pytest.raises(Exception, match="No such option"):
        parsed("gputune tune --fast -- python classifier.py")


@pytest.mark.slow
def test_the_readme_names_every_example_and_its_commands_are_understood():
    for path in [*SCRIPTS, *EXAMPLES.glob("*/*")]:
        assert f"({path.relative_to(EXAMPLES)})" in README
    assert all(parsed(line) for line in commands(README))
    assert all(line in README for line in COMMANDS.values())
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert (EXAMPLES / target).exists(), target


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_what_gputune_prints_is_what_it_prints_today(name):
    """`python tests/rederive.py` writes it anew."""
    assert (EXAMPLES / name).read_text() == text(name)
