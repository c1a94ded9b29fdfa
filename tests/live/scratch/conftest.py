"""A user's folder, and scripts that run in it while what they save goes to a scratch folder."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from making import environ, python

import gputune

PRIVATE = Path(gputune.__file__).parent / "live" / "private.py"
SCRIPTS = Path(__file__).parent / "scripts"

RUNNER = """
import importlib, importlib.util, runpy, sys
private_path, when, scratch, libraries, script, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
spec = importlib.util.spec_from_file_location("_gputune_private", private_path)
private = importlib.util.module_from_spec(spec)
spec.loader.exec_module(private)
private.hook()

def redirect(*_):
    importlib.import_module("_gputune.live.scratch").redirect(scratch)

if when == "before":
    redirect()
if when == "during":
    importlib.import_module("_gputune.live.imports").after("torch", redirect, "")
for library in libraries.split():
    importlib.import_module(library)
if when == "after":
    redirect()
assert "gputune" not in sys.modules
runpy.run_path(script, run_name="__main__")
"""
"""Runs a script, with the redirection before its libraries are imported, during torch's import, after, or never."""


def digest(folder: Path) -> dict[str, tuple[int, str]]:
    """Of every file and folder below, and of the folder itself: when it was changed, and what it holds."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in [folder, *sorted(folder.rglob("*"))]
    }


@dataclass
class Users:
    """The user's home: a script is run in `folder`, and nothing else of `home` may change either."""

    home: Path
    scratch: Path

    @property
    def folder(self) -> Path:
        return self.home / "work"

    def run(self, script: Path | str, *arguments: str, when: str = "never", libraries: str = "", **more: str) -> str:
        quiet = {"HOME": str(self.home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        words = (str(PRIVATE), when, str(self.scratch), libraries, str(SCRIPTS / script), *arguments)
        env = environ(**{**quiet, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(self.home.parent), **more})
        done = python("-c", RUNNER, *words, env=env, cwd=self.folder)
        assert done.returncode == 0, done.stderr[-4000:]
        assert "gputune:" not in done.stderr
        return done.stdout

    def files(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}

    def saved(self) -> set[str]:
        """The files of the scratch folder, by the names that they have in the user's."""
        below = self.scratch / "copies" / str(self.folder).lstrip("/")
        return {str(path.relative_to(below)) for path in below.rglob("*") if path.is_file()}


@pytest.fixture
def users(tmp_path: Path) -> Users:
    made = Users(tmp_path / "home", tmp_path / "scratch")
    made.folder.mkdir(parents=True)
    return made


@pytest.fixture(scope="session")
def populated(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The user's folder after a script has run once, as ever. Each script runs once for all tests."""
    known: dict[tuple[str, ...], Path] = {}

    def populate(*words: str) -> Path:
        if words not in known:
            root = tmp_path_factory.mktemp("populated")
            once = Users(root / "home", root / "scratch")
            once.folder.mkdir(parents=True)
            once.run(*words, "1")
            assert not once.scratch.exists()
            known[words] = once.folder
        return known[words]

    return populate


@pytest.fixture
def again(users: Users, populated: Callable[..., Path]) -> Callable[..., Users]:
    def fill(*words: str) -> Users:
        shutil.copytree(populated(*words), users.folder, dirs_exist_ok=True)
        return users

    return fill
