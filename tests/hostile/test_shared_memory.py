"""A command that is killed while it creates a semaphore, before multiprocessing's tracker knows of it, or a tensor for
another process, before torch has unlinked its name.
"""

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
with open("/dev/shm/" + sys.argv[2], "w+b") as file:
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
    kept = Kept([sys.executable, "-c", words[0], str(said), *words[1:]])
    try:
        until(said.exists)
        name = said.read_text().removeprefix("/")
        path = Path("/dev/shm", f"sem.{name}" if name.startswith("mp-") else name)
        assert path.exists()
    finally:
        kept.end()
    return path


def test_leaves_none(tmp_path: Path) -> None:
    assert not left_by(tmp_path / "said", UNTOLD).exists()


@pytest.mark.parametrize("step", ["opened", "mapped"])
def test_nor_one_that_has_no_name_yet(tmp_path: Path, step: str) -> None:
    assert not left_by(tmp_path / "said", CREATING, f"sem.{secrets.token_hex(3)}", step).exists()


@pytest.mark.parametrize("step", ["opened", "mapped"])
def test_nor_a_tensor_of_torchs(tmp_path: Path, step: str) -> None:
    assert not left_by(tmp_path / "said", CREATING, f"torch_1234_{secrets.token_hex(4)}_7", step).exists()


def test_but_one_of_another_process_stays(tmp_path: Path) -> None:
    others = Path("/dev/shm", f"torch_1234_{secrets.token_hex(4)}_7")
    others.touch()
    try:
        assert not left_by(tmp_path / "said", CREATING, f"torch_1234_{secrets.token_hex(4)}_7", "mapped").exists()
        assert others.exists()
    finally:
        others.unlink()


def test_but_what_has_another_name_stays(tmp_path: Path) -> None:
    """A program's own, by which it may meet others."""
    semaphore = left_by(tmp_path / "said", CREATING, f"sem.own-{secrets.token_hex(3)}", "mapped")
    assert semaphore.exists()
    semaphore.unlink()
