"""Calls that wait for modules, in fresh interpreters."""

from pathlib import Path

import pytest
from making import environ, python

import gputune

PRIVATE = Path(gputune.__file__).parent / "live" / "private.py"

AFTER = f"""
import importlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("_gputune_private", {str(PRIVATE)!r})
private = importlib.util.module_from_spec(spec)
spec.loader.exec_module(private)
private.hook()
after = importlib.import_module("_gputune.live.imports").after
told = []
"""


@pytest.fixture
def told(tmp_path: Path) -> object:
    def tell(code: str, **modules: str) -> tuple[str, str]:
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
        env = environ(PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
        done = python("-c", AFTER + code, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return tell


NOTE = "after('one', lambda module: told.append(module.VALUE), 'untold')\n"


def test_after_the_import(told) -> None:
    code = (
        NOTE
        + "print(told)\nimport importlib.util; importlib.util.find_spec('one')\nprint(told)\nimport one\nprint(told)"
    )
    assert told(code, one="VALUE = 1") == ("[]\n[]\n[1]\n", "")


def test_what_a_program_imports_from_it_is_what_was_put_there(told) -> None:
    code = "after('one', lambda module: setattr(module, 'VALUE', 2), '')\nfrom one import VALUE\nprint(VALUE)"
    assert told(code, one="VALUE = 1") == ("2\n", "")


def test_at_once_where_it_has_been_imported(told) -> None:
    assert told(f"import one\n{NOTE}print(told)", one="VALUE = 1") == ("[1]\n", "")


def test_at_the_end_of_an_import_that_has_begun(told) -> None:
    """As of a library that imports torch, and with it this, before it defines anything."""
    one = "import two\nVALUE = 1"
    two = "import __main__ as main\nexec(main.NOTES, vars(main))\nmain.told.append(0)"
    code = f"NOTES = {NOTE + NOTE!r}\nfrom one import VALUE\nprint(told, type(sys.modules['one'].__spec__).__name__)"
    assert told(code, one=one, two=two) == ("[0, 1, 1] ModuleSpec\n", "")


def test_an_import_that_fails_after_it_had_begun_and_then_does_not(told) -> None:
    one = "import two, os\nVALUE = int(os.environ['ONE'])"
    two = "import __main__ as main\nexec(main.NOTES, vars(main))"
    code = f"""
import os
NOTES = {NOTE!r}
for value in (None, 1):
    try:
        import one
    except KeyError as error:
        print(error, told)
    os.environ["ONE"] = "1"
print(told)
"""
    assert told(code, one=one, two=two) == ("'ONE' []\n[1]\n", "")


def test_again_where_it_is_imported_anew(told) -> None:
    code = NOTE + "import one\nimportlib.reload(one)\ndel sys.modules['one']\nimport one\nprint(told)"
    assert told(code, one="VALUE = 1") == ("[1, 1, 1]\n", "")


def test_several_wait_and_one_that_fails_is_told_on_stderr(told) -> None:
    code = f"after('one', lambda _: {{}}['fault'], 'one is as it was')\n{NOTE}import one\nprint(told)"
    said = "gputune: one is as it was: KeyError: 'fault'\n"
    assert told(code, one="VALUE = 1") == ("[1]\n", said)


def test_what_is_missing_is_missing_as_ever(told) -> None:
    code = NOTE + "try:\n    import one\nexcept ModuleNotFoundError as error:\n    print(error, told)"
    assert told(code) == ("No module named 'one' []\n", "")


def test_a_built_in_module_and_a_lazy_one(told) -> None:
    code = f"""
{NOTE}spec = importlib.util.find_spec("one")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules["one"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(told)
module.VALUE
print(told)
after("_bisect", told.append, "")
import _bisect
print(len(told))
"""
    out, error = told(code, one="VALUE = 1")
    assert (out.splitlines()[:2], error) == (["[]", "[1]"], "")
