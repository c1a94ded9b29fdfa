"""What a start of a program leaves of the user's files where it cannot run above copies, and which names are told."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest
from making import environ

from gputune.live.orders import Done
from gputune.trials.command import RunningCommand
from gputune.trials.failure import RunFailed
from gputune.trials.start import Start
from gputune.trials.user_files import WRITTEN

pytestmark = pytest.mark.slow
WRITES = """
import os, sqlite3, subprocess
log = open("log.txt", "a")
log.write("before torch is imported")
os.replace("last.pt", "prev.pt")
import torch
torch.save({}, "last.pt")
sqlite3.connect("runs.db").close()
open("CACHE/kept", "w").close()
open("/dev/null", "w").close()
assert os.listdir("CACHE") == ["kept"], os.listdir("CACHE")
print(sorted(os.listdir(".")))
"""
BY_ANOTHER = """
import subprocess, sys, torch
subprocess.run([sys.executable, "-c", "open('by_python.txt', 'w').close()"], check=True)
subprocess.run(["touch", "by_touch.txt"], check=True)
"""


class Started:
    def __init__(self, folder: Path) -> None:
        self.work, self.private, self.cache = folder / "work", folder / "private", folder / "cache"
        for one in (self.work, self.private, self.cache):
            one.mkdir()
        for name in ("log.txt", "last.pt", "prev.pt"):
            (self.work / name).write_text(f"of the last run: {name}")
        self.before = self.files()

    def files(self) -> dict[str, str]:
        return {one.name: one.read_text(errors="replace") for one in self.work.iterdir()}

    @contextmanager
    def started(self, program: str, **options: bool) -> Iterator[RunningCommand]:
        words = (sys.executable, "-c", program.replace("CACHE", str(self.cache)))
        here = environ(XDG_CACHE_HOME=str(self.cache), TMPDIR=str(self.private), HOME=str(self.work.parent))
        with (self.private / "log").open("wb") as log, chdir(self.work):
            start = Start(command=words, environ=here, folder=self.private, log=log, **options)
            with RunningCommand(start, "time") as running:
                yield running

    def output(self, program: str, **options: bool) -> str:
        with self.started(program, **options) as running, pytest.raises(RunFailed, match=r"exit code 0\)"):
            running.first(Done)
        return (self.private / "log").read_text()

    def written(self) -> set[str]:
        file = self.private / WRITTEN
        return {os.path.relpath(line, self.work) for line in file.read_text().splitlines()} if file.exists() else set()


@pytest.fixture
def user(tmp_path: Path) -> Started:
    return Started(tmp_path)


def test_nothing_of_the_users_changes_from_the_first_line_on(user: Started) -> None:
    assert user.output(WRITES) == "['last.pt', 'log.txt', 'prev.pt', 'runs.db']\n"
    assert user.files() == user.before
    assert (user.cache / "kept").exists()
    assert user.written() == set()
    assert not list(user.private.glob("scratch"))


def test_what_another_program_writes_it_writes_but_another_python_does_not(user: Started) -> None:
    user.output(BY_ANOTHER)
    assert set(user.files()) - set(user.before) == {"by_touch.txt"}


def test_with_writes_allowed_each_file_is_written_and_named(user: Started) -> None:
    user.output(WRITES, allow_writes=True)
    assert user.files()["prev.pt"] == "of the last run: last.pt"
    assert user.files()["log.txt"].endswith("before torch is imported")
    assert {"log.txt", "last.pt", "prev.pt", "runs.db"} <= user.written()
    assert "../cache/kept" not in user.written()


def test_the_end_of_a_tune_names_what_was_written(tmp_path: Path) -> None:
    script = "import torch; [open(f'{n}.json', 'w').close() for n in range(7)]; raise SystemExit(3)"
    words = ["-m", "gputune", "tune", "--allow-writes", "--", sys.executable, "-c", script]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False
    )
    named = ", ".join(str(tmp_path / f"{n}.json") for n in range(5))
    assert f"gputune: it has written to your folders: {named} and 2 more\n" in done.stderr
