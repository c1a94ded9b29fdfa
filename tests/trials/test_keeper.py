"""What the keeper of a command leaves behind: nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from making import environ, until

from gputune.host.kept import keeper_words

LEAVES = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True)
until = sys.stdin.readline if sys.argv[2:] else None
open("pid", "w").write(str(child.pid))
while os.path.getsize("said") == 0:
    pass
if until:
    until()
"""
"""It starts a program and ends as soon as that has written to the file `said`, or when stdin is closed."""
SLEEPS = """
import time
open("said", "w").write("so")
time.sleep(60)
"""
HALF_GONE = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
open("said", "w").write("so")
ctypes.CDLL(None).pthread_exit(None)
"""
"""Its main thread has ended, so that it looks like a zombie: as a process does whose GPU memory is being freed."""
IGNORES = """
import signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
open("said", "w").write("so")
time.sleep(60)
"""


@contextmanager
def keeper(folder: Path, *command: str, **variables: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    (folder / "said").touch()
    reader, writer = os.pipe()
    words = [*keeper_words(reader), *command]
    child = subprocess.Popen(words, cwd=folder, env=environ(**variables), pass_fds=[reader], stdin=subprocess.PIPE)
    os.close(reader)
    try:
        yield child, writer
    finally:
        child.kill()
        child.communicate()
        with suppress(OSError):  # a test may have closed it
            os.close(writer)


@pytest.mark.slow
@pytest.mark.parametrize("program", [SLEEPS, HALF_GONE, IGNORES], ids=["sleeps", "half gone", "ignores signals"])
class TestLeavesNothing:
    def test_behind_a_command_that_has_ended(self, tmp_path: Path, program: str) -> None:
        with keeper(tmp_path, sys.executable, "-c", LEAVES, program) as (child, _):
            assert child.wait(20) == 0
            assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))

    def test_when_its_owner_goes_away(self, tmp_path: Path, program: str) -> None:
        with keeper(tmp_path, sys.executable, "-c", LEAVES, program, "waits") as (child, writer):
            until(lambda: (tmp_path / "said").read_text() == "so", 20)
            os.close(writer)
            assert child.wait(20) == 128 + signal.SIGKILL
            assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


LINKS = """
import os
whole, half = open("whole.so"), open("half.so", "w")
if not os.fork():
    open("said", "w").write("so")
    os.read(0, 1)
    os._exit(0)
while open("said").read() != "so":
    pass
"""


def test_a_library_that_is_half_linked_does_not_stay_among_compiled_code(tmp_path: Path) -> None:
    (tmp_path / "whole.so").touch()
    with keeper(tmp_path, sys.executable, "-c", LINKS, TORCHINDUCTOR_CACHE_DIR=str(tmp_path)) as (child, _):
        assert child.wait(20) == 0
    assert [one.name for one in tmp_path.glob("*.so")] == ["whole.so"]


def test_a_command_that_is_killed(tmp_path: Path) -> None:
    with keeper(tmp_path, "sh", "-c", "kill -KILL $$") as (child, _):
        assert child.wait(20) == 128 + signal.SIGKILL


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started(tmp_path: Path, command: str, code: int) -> None:
    begun = time.monotonic()
    with keeper(tmp_path, command) as (child, _):
        assert child.wait(20) == code
    assert time.monotonic() - begun < 10
