"""The house rules that no linter holds: what each plug-in has, its name, and its test."""

import re
from pathlib import Path

import pytest

import gputune
from gputune import benches, checks, plugins, settings

HOUSE = Path(gputune.__file__).parent
TESTS = Path(__file__).parent


def modules(folder):
    return sorted(path for path in (HOUSE / folder).glob("*.py") if not path.name.startswith("_"))


@pytest.mark.parametrize("name", settings.names())
def test_a_setting_has_what_its_phase_needs(name):
    needed = {
        "launch": ("NAMES", "environ", "current", "default"),
        "process": ("apply", "current", "default"),
        "code": ("USE",),
    }
    setting = settings.load(name)
    missing = [one for one in ("VALUE", "DEPENDS", "recommend", *needed[setting.PHASE]) if not hasattr(setting, one)]
    assert not missing
    assert setting.NUMERICS in settings.LEVELS
    assert "Source:" in setting.__doc__


@pytest.mark.parametrize("name", plugins.names("gputune.benches"))
def test_a_bench_has_what_every_bench_needs(name):
    bench = plugins.load("gputune.benches", name)
    assert not [one for one in ("SECONDS", "RANK", "measure") if not hasattr(bench, one)]


@pytest.mark.parametrize("folder", ["settings", "checks", "benches"])
def test_everything_that_can_be_explained_has_a_title_line(folder):
    package = {"settings": settings, "checks": checks, "benches": benches}[folder]
    for name in package.names():
        title = package.load(name).__doc__.strip().split("\n")[0]
        assert title[-1] in ".?)`", (name, title)


@pytest.mark.parametrize("folder", ["settings", "checks", "benches", "facts", "inject/hands"])
def test_everything_plugged_in_is_tested_by_name(folder):
    """In a file of its name, or in one beside that imports it or quotes its name."""
    tests = {path.stem: path.read_text() for path in (TESTS / folder).glob("test_*.py")}
    for path in modules(folder):
        name = re.compile(rf"import .*\b{path.stem}\b|\b{folder}\.{path.stem} import|[\"']{path.stem}[\"']")
        assert f"test_{path.stem}" in tests or any(map(name.search, tests.values())), path.name


def test_names_are_taken_once():
    every = [name for package in (settings, checks, benches) for name in plugins.names(package.__name__)]
    assert len(every) == len(set(every))


def test_files_are_short():
    long = {path.name: count for path in HOUSE.rglob("*.py") if (count := len(path.read_text().splitlines())) > 300}
    assert not long
