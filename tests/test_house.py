"""The house rules that no linter holds: what each plug-in has, its name, and its test."""

import ast
import re
from pathlib import Path

import pytest

import gputune
from gputune import benches, checks, knobs, plugins

HOUSE = Path(gputune.__file__).parent
TESTS = Path(__file__).parent


def modules(folder):
    return sorted(path for path in (HOUSE / folder).glob("*.py") if not path.name.startswith("_"))


@pytest.mark.parametrize("name", knobs.names())
def test_a_setting_has_what_its_phase_needs(name):
    needed = {
        "launch": ("NAMES", "environ", "current"),
        "process": ("apply", "current"),
        "code": ("USE",),
    }
    setting = knobs.load(name)
    missing = [one for one in ("VALUE", "DEFAULT", "DEPENDS", *needed[setting.PHASE]) if not hasattr(setting, one)]
    assert not missing
    assert setting.NUMERICS in knobs.LEVELS
    assert "Source:" in setting.__doc__


@pytest.mark.parametrize("name", plugins.names("gputune.benches"))
def test_a_bench_has_what_every_bench_needs(name):
    bench = plugins.load("gputune.benches", name)
    assert not [one for one in ("SECONDS", "RANK", "measure") if not hasattr(bench, one)]


@pytest.mark.parametrize("folder", ["knobs", "checks", "benches"])
def test_everything_that_can_be_explained_has_a_title_line(folder):
    package = {"knobs": knobs, "checks": checks, "benches": benches}[folder]
    for name in package.names():
        title = package.load(name).__doc__.strip().split("\n")[0]
        assert title[-1] in ".?)`", (name, title)


@pytest.mark.parametrize("folder", ["knobs", "advice", "checks", "benches", "facts"])
def test_everything_plugged_in_is_tested_by_name(folder):
    """In a file of its name, or in one beside that imports it or quotes its name."""
    folders = ("knobs", "advice") if folder == "knobs" else (folder,)  # a knob that is only declared has its advice
    tests = {path.stem: path.read_text() for one in folders for path in (TESTS / one).glob("test_*.py")}
    for path in modules(folder):
        name = re.compile(rf"import .*\b{path.stem}\b|\b{folder}\.{path.stem} import|[\"']{path.stem}[\"']")
        assert f"test_{path.stem}" in tests or any(map(name.search, tests.values())), path.name


def test_names_are_taken_once():
    every = [name for package in (knobs, checks, benches) for name in plugins.names(package.__name__)]
    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    ("marker", "folder"),
    [("browser", "report/page"), ("containers", "containers"), ("slurm", "slurm"), ("torches", "traps")],
)
def test_what_a_stage_runs_is_in_the_folder_that_it_names(marker, folder):
    """.ci/run collects no others there, which would take as long as the tests do."""
    marked = [path for path in TESTS.rglob("test_*.py") if re.search(rf"pytest\.mark\.{marker}\b", path.read_text())]
    assert [path for path in marked if not path.is_relative_to(TESTS / folder)] == []
    assert f"tests {marker} tests/{folder}" in (TESTS.parent / ".ci" / "run").read_text()


def test_files_are_short():
    long = {path.name: count for path in HOUSE.rglob("*.py") if (count := len(path.read_text().splitlines())) > 300}
    assert not long


DOORS = {
    "host/stderr.py": {"print"},
    "host/keeper.py": {"print"},  # of the standard library alone
    "host/overlay.py": {"print"},  # the same
    "report/tables.py": {"Console"},
    "live/__init__.py": {"sys.stderr.write"},  # in a program of the user's
    "live/shim/sitecustomize.py": {"sys.stderr.write"},
}
"""The files that print by themselves what they have made printable, and how."""
PRINTING = re.compile(
    r"(?:builtins\.|rich\.)?print|(?:.*\.)?(?:Console|echo|secho|print_exc|print_exception|print_tb|print_stack)"
    r"|sys\.(?:__)?std(?:out|err)(?:__)?(?:\.buffer)?\.write(?:lines)?"
)


def printing(tree):
    """What is called, or is a base of a class, and prints."""
    used = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    used += [base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases]
    return {name for one in used if PRINTING.fullmatch(name := ast.unparse(one))}


def test_what_prints_is_seen():
    text = (
        "print(1); typer.echo(2); sys.stderr.write(3); console.print(4); traceback.print_exc(); Console(); f.write(5)"
    )
    assert printing(ast.parse(text)) == {"print", "typer.echo", "sys.stderr.write", "traceback.print_exc", "Console"}


def test_nothing_is_printed_but_through_the_doors():
    """`host.stderr`, and `report.tables` for what rich draws, let nothing through that steers a terminal."""
    found = {str(path.relative_to(HOUSE)): printing(ast.parse(path.read_text())) for path in HOUSE.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == DOORS
