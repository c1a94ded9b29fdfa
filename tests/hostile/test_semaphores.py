"""A command that is killed while it creates a semaphore, before multiprocessing's tracker knows of it."""

import secrets
import sys
from pathlib import Path

import pytest
from making import until

from gputune.host.kept import Kept

UNTOLD = """
import multiprocessing, os, pathlib, sys, time
from multiprocessing import resource_tracker
def untold(name, kind):
    pathlib.Path(sys.argv[1] + ".new").write_text(name)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(1000)
resource_tracker.register = untold
multiprocessing.get_context("spawn").Lock()
"""


CREATING = """
import mmap, os, pathlib, sys, time
with open("/dev/shm/sem." + sys.argv[2], "w+b") as file:
    file.write(bytes(32))
    file.flush()
    if sys.argv[3] == "mapped":
        mapped = mmap.mmap(file.fileno(), 32)
    else:
        kept = os.dup(file.fileno())
pathlib.Path(sys.argv[1] + ".new").write_text(sys.argv[2])
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(1000)
"""
"""The first steps of glibc's sem_open."""


def left_by(said: Path, *words: str) -> Path:
    """The path of the semaphore that a command said that it has, once the command was ended."""
    kept = Kept([sys.executable, "-c", words[0], str(said), *words[1:]])
    try:
        until(said.exists)
        semaphore = Path(f"/dev/shm/sem.{said.read_text().removeprefix('/')}")
        assert semaphore.exists()
    finally:
        kept.end()
    return semaphore


def test_leaves_none(tmp_path: Path) -> None:
    assert not left_by(tmp_path / "said", UNTOLD).exists()


@pytest.mark.parametrize("step", ["opened", "mapped"])
def test_nor_one_that_has_no_name_yet(tmp_path: Path, step: str) -> None:
    assert not left_by(tmp_path / "said", CREATING, secrets.token_hex(3), step).exists()


def test_but_what_has_another_name_stays(tmp_path: Path) -> None:
    """A program's own, by which it may meet others."""
    semaphore = left_by(tmp_path / "said", CREATING, f"own-{secrets.token_hex(3)}", "mapped")
    assert semaphore.exists()
    semaphore.unlink()
