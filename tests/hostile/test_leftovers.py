"""However gputune ends in the midst of a bench, nothing of it is left in the temporary folder or in /dev/shm."""

import getpass
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import stand_in
from making import environ, gputune, until
from stub_nvml.node import MARK, left

BENCH = """
import multiprocessing, pathlib, tempfile
from multiprocessing.connection import Listener
context.say("under way")
kept = tempfile.TemporaryDirectory(prefix="gputune-")
pathlib.Path(kept.name, "read-only").mkdir()
pathlib.Path(kept.name, "read-only", "file").touch()
pathlib.Path(kept.name, "read-only").chmod(0o500)
spawning = multiprocessing.get_context("spawn")
listener, lock = Listener(family="AF_UNIX"), spawning.Lock()
subprocess = __import__("subprocess").Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
pathlib.Path({said!r}).write_text(lock._semlock.name + " " + tempfile.gettempdir())
{then}
yield told("precision")
"""
HANGS = "__import__('ctypes').PyDLL(None).sleep(1000)"
PROBE = ["probe", "--device", "cpu", "--budget", "quick", "--only", "precision", "-o", "p.yaml"]
KILL, TERM, INT, HUP = signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP


@pytest.fixture
def folder() -> Iterator[Path]:
    """The temporary folder. Its name is short, since a socket's may not be long."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


class Probe:
    def __init__(self, place: Path, folder: Path, then: str = HANGS) -> None:
        self.said, self.folder, self.mark = place / "said", folder, uuid.uuid4().hex
        stand_in.torch(place)
        path = stand_in.benches(place, precision=BENCH.format(said=str(self.said), then=then))
        env = environ(PYTHONPATH=path, TMPDIR=str(folder), **{MARK: self.mark})
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "gputune", *PROBE], env=env, cwd=place, stderr=subprocess.PIPE
        )
        until(lambda: self.said.exists() and " " in self.said.read_text())

    @property
    def semaphore(self) -> Path:
        return Path(f"/dev/shm/sem.{self.said.read_text().split()[0].removeprefix('/')}")

    @property
    def used(self) -> Path:
        return Path(self.said.read_text().split()[1])

    def leaves_nothing(self) -> None:
        self.process.communicate(timeout=30)
        assert left(self.mark, 5) == []
        assert list(self.folder.iterdir()) == []
        assert not self.semaphore.exists()


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [[KILL], [TERM], [INT], [HUP], [TERM, TERM, KILL]], ids=str)
def test_nothing_is_left_of_a_bench(numbers: list[signal.Signals], tmp_path: Path, folder: Path) -> None:
    probe = Probe(tmp_path, folder)
    assert probe.semaphore.exists()
    assert probe.used.parent == folder
    for number in numbers:
        probe.process.send_signal(number)
    probe.leaves_nothing()


@pytest.mark.slow
@pytest.mark.parametrize("then", ["pass", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_nor_of_one_that_ends(then: str, tmp_path: Path, folder: Path) -> None:
    Probe(tmp_path, folder, then).leaves_nothing()


@pytest.mark.slow
def test_without_a_keeper_gputune_removes_it(tmp_path: Path, folder: Path) -> None:
    probe = Probe(tmp_path, folder)
    keeper = subprocess.run(
        ["pgrep", "-P", str(probe.process.pid), "-f", "host/keeper"], capture_output=True, check=True
    )
    os.kill(int(keeper.stdout), signal.SIGKILL)
    probe.process.communicate(timeout=60)
    assert left(probe.mark, 5) == []
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("place", ["/nowhere", "/" + "a" * 70])
def test_without_room_for_a_folder_it_measures_all_the_same(place: str, tmp_path: Path, folder: Path) -> None:
    """Where the temporary folder is missing, or its name is too long for sockets in a folder below it."""
    chosen = Path(f"{folder}{place}")
    if "nowhere" not in place:
        chosen.mkdir()
    stand_in.torch(tmp_path)
    env = environ(PYTHONPATH=stand_in.benches(tmp_path, precision="yield told('precision')"), TMPDIR=str(chosen))
    ran = gputune(*PROBE, env=env, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "told" in (tmp_path / "p.yaml").read_text()


USERS = """
import os, tempfile
def make():
    open("seen", "w").write(f"{os.environ['TMPDIR']} {tempfile.gettempdir()}")
    return list(range(100))
"""


@pytest.mark.slow
def test_the_user_s_own_dataset_finds_its_data_where_tmpdir_says(tmp_path: Path, folder: Path) -> None:
    """A batch system's scripts copy it there."""
    (tmp_path / "mine.py").write_text(USERS)
    words = [*PROBE[:-3], "dataset", *PROBE[-2:], "--dataset", "mine.py:make"]
    gputune(*words, env=environ(TMPDIR=str(folder)), cwd=tmp_path)
    assert (tmp_path / "seen").read_text() == f"{folder} {folder}"
    assert list(folder.iterdir()) == []


SCRIPT = """
import os, pathlib, time
pathlib.Path("of the user").touch()
pathlib.Path(os.environ["TMPDIR"], "begun").touch()
time.sleep(1000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [KILL, TERM, HUP], ids=lambda number: number.name)
def test_nothing_is_left_of_a_tune(number: signal.Signals, tmp_path: Path, folder: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    mark = uuid.uuid4().hex
    env = environ(TMPDIR=str(folder), XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path), **{MARK: mark})
    words = [sys.executable, "-P", "-m", "gputune", "tune", "--", sys.executable, "train.py"]
    process = subprocess.Popen(words, env=env, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    until(lambda: any(folder.glob("*/tmp/begun")) or process.poll() is not None)
    assert any(folder.iterdir()), process.communicate()[1]
    assert not (tmp_path / "of the user").exists()
    process.send_signal(number)
    process.communicate(timeout=30)
    assert left(mark, 5) == []
    assert [one.name for one in folder.iterdir()] in ([], [f"torchinductor_{getpass.getuser()}"])  # torch's own cache
