"""Under PYTHONWARNDEFAULTENCODING=1 and PYTHONWARNINGS=error no file, pipe or child of gputune's is without a named
encoding: where one was, a start ended there.
"""

import ast
import json
from pathlib import Path

import pytest
from making import H200, environ, gputune, profile, python, written

import gputune as package

STRICT = {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error"}
TEXT_MODE = {"text", "universal_newlines"}


def without_encoding(tree: ast.AST) -> list[int]:
    """The lines of calls that ruff's rule does not know: `os.fdopen` of text, and children whose pipes are text."""
    found = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        given = {word.arg for word in call.keywords}
        as_text = any(word.arg in TEXT_MODE and getattr(word.value, "value", 0) is True for word in call.keywords)
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        mode = next((a.value for a in call.args[1:2] if isinstance(a, ast.Constant)), "r")
        text = name in ("fdopen", "TextIOWrapper") and "b" not in str(mode)
        if (text or as_text) and "encoding" not in given:
            found.append(call.lineno)
    return found


@pytest.mark.slow
def test_every_pipe_and_child_names_its_encoding() -> None:
    files = [*Path(package.__file__).parent.rglob("*.py"), *Path(package.__file__).parents[1].glob("gputune_*.py")]
    missing = {str(path): without_encoding(ast.parse(path.read_bytes())) for path in files}
    assert not {path: lines for path, lines in missing.items() if lines}


def strictly(*arguments: str, **variables: str) -> str:
    done = gputune(*arguments, env=environ(**STRICT | variables))
    assert "Warning" not in done.stderr, done.stderr
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.slow
def test_apply(tmp_path: Path) -> None:
    path = written(tmp_path, profile(fingerprint=H200))
    assert strictly("apply", "--ignore-fingerprint", path, "--", "printenv", "PYTHONWARNINGS") == "error\n"


@pytest.mark.slow
def test_a_warning_of_a_dependency_is_no_fault_of_the_start(tmp_path: Path) -> None:
    """As a new typer warns of an old click."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            import warnings; warnings.warn('deprecated', DeprecationWarning)\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    assert strictly("--version", PYTHONPATH=str(tmp_path)) == f"{package.__version__}\n"


@pytest.fixture
def ours(tmp_path: Path) -> str:
    """A PYTHONPATH with which only our own modules are held to it: torch's import breaks it, too."""
    (tmp_path / "sitecustomize.py").write_text(
        "import warnings\n"
        "warnings.filterwarnings('error', category=EncodingWarning, module=r'_?gputune|__main__|sitecustomize')\n"
    )
    return str(tmp_path)


@pytest.mark.slow
def test_a_torch_that_breaks_it_is_named_and_nothing_else_fails() -> None:
    """Some releases of torch open files without an encoding in their import, and some do not."""
    breaks_it = python("-c", "import torch", env=environ(**STRICT)).returncode
    found = json.loads(strictly("check", "--json", "--fail-on", "never"))
    faults = [gap["fact"] for gap in found["facts"]["gaps"] if "Warning" in gap["reason"]]
    assert faults == (["libraries.torch"] if breaks_it else [])


@pytest.mark.slow
def test_in_a_program_of_the_users_which_keeps_its_filters(ours: str) -> None:
    env = environ(PYTHONWARNDEFAULTENCODING="1", PYTHONPATH=ours)
    done = python("-c", "import gputune; gputune.check(); print(gputune.status() is not None)", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
