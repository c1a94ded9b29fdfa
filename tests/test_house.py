"""The house rules that no linter holds: laziness, names, and a test for everything that can be plugged in."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import stand_in
from making import environ

import gputune
from gputune import benches, checks, settings

HOUSE = Path(gputune.__file__).parent
TESTS = Path(__file__).parent
HEAVY = {"torch", "pynvml", "numpy", "rich", "yaml", "psutil"}


def modules(folder):
    return sorted(path for path in (HOUSE / folder).glob("*.py") if not path.name.startswith("_"))


def loaded_by(code, env=None):
    """The top-level packages that a fresh interpreter has loaded after `code`."""
    script = code + "\nimport sys; sys.stderr.write(' '.join({name.split('.')[0] for name in sys.modules}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    return set(result.stderr.split())


def test_importing_gputune_loads_nothing_heavy():
    assert not loaded_by("import gputune") & HEAVY


def test_help_loads_neither_torch_nor_nvml_nor_yaml():
    code = "import sys; sys.argv = ['gputune', '--help']\nfrom gputune.cli import main\ntry: main()\nexcept SystemExit: pass"
    assert not loaded_by(code) & {"torch", "pynvml", "numpy", "yaml"}


def test_check_does_not_import_torch_in_its_own_process(tmp_path):
    code = "import sys; sys.argv = ['gputune', 'check']\nfrom gputune.cli import main\ntry: main()\nexcept SystemExit: pass"
    assert "torch" not in loaded_by(code, environ(PYTHONPATH=stand_in.torch(tmp_path)))


@pytest.mark.parametrize("path", modules("settings"), ids=lambda path: path.stem)
def test_a_setting_imports_the_standard_library_and_its_neighbours_only(path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or node.module.split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert all(name.name.split(".")[0] in sys.stdlib_module_names for name in node.names)


@pytest.mark.parametrize("path", modules("settings"), ids=lambda path: path.stem)
def test_a_setting_has_what_its_phase_needs(path):
    module = settings.load(path.stem)
    assert module.PHASE in ("launch", "process", "code")
    assert module.NUMERICS in ("exact", "rounding", "tf32", "mixed")
    needed = {"launch": ("environ",), "process": ("apply", "current", "default"), "code": ()}[module.PHASE]
    assert all(callable(getattr(module, name)) for name in needed)
    assert "Source:" in module.__doc__


@pytest.mark.parametrize("folder", ["settings", "checks", "benches"])
def test_everything_that_can_be_explained_has_a_title_line(folder):
    package = {"settings": settings, "checks": checks, "benches": benches}[folder]
    for name in package.names():
        title = package.load(name).__doc__.strip().split("\n")[0]
        assert title[-1] in ".?)`", (name, title)


@pytest.mark.parametrize("folder", ["settings", "checks", "facts"])
def test_everything_plugged_in_has_a_test_of_its_name(folder):
    for path in modules(folder):
        assert (TESTS / folder / f"test_{path.stem.lstrip('_')}.py").exists(), path.name


def test_names_are_taken_once():
    every = [*settings.names(), *checks.names(), *benches.names()]
    assert len(every) == len(set(every))


def test_files_are_short():
    long = {path.name: count for path in HOUSE.rglob("*.py") if (count := len(path.read_text().splitlines())) > 300}
    assert not long
