"""Code carried into other interpreters imports nothing but itself, the standard library and torch."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from making import environ, python

import gputune

HOUSE = Path(gputune.__file__).parent
CARRIED = ["live", "knobs", "resources"]
FILES = [
    HOUSE / "plugins.py",
    HOUSE / "measurement.py",
    *(path for room in CARRIED for path in (HOUSE / room).glob("*.py")),
]


def imports_at_run_time(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Import | ast.ImportFrom):
            yield inner
        elif not (isinstance(inner, ast.If) and ast.unparse(inner.test) == "TYPE_CHECKING"):
            yield from imports_at_run_time(inner)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_what_is_carried_imports_the_standard_library_and_its_neighbours_only(path: Path) -> None:
    for node in imports_at_run_time(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        relative = isinstance(node, ast.ImportFrom) and node.level > 0
        assert relative or all(name.split(".")[0] in {*sys.stdlib_module_names, "torch"} for name in names), names


def test_all_of_it_loads_below_one_parent_where_there_is_no_gputune(tmp_path: Path) -> None:
    code = f"""
import importlib, importlib.util, json, pkgutil, sys
spec = importlib.util.spec_from_file_location("_gputune_private", {str(HOUSE / "live" / "private.py")!r})
private = importlib.util.module_from_spec(spec)
spec.loader.exec_module(private)
assert private.hook() is private.hook()
for room in {CARRIED}:
    package = importlib.import_module(f"_gputune.{{room}}")
    for one in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"_gputune.{{room}}.{{one.name}}")
loaded = {{name.split(".")[0] for name in sys.modules}}
print(json.dumps(sorted(loaded & {{"gputune", "torch", "yaml", "typer", "psutil"}})))
"""
    done = python("-S", "-c", code, env=environ(PYTHONDONTWRITEBYTECODE="1"))
    assert (json.loads(done.stdout), done.stderr) == ([], "")
