"""However gputune ends while a child of it hangs, no process is left and no temporary file.

The children hang where no deadline helps: in the import of torch, and in a call that never gives the interpreter back.
"""

import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from making import environ, executable, until
from stub_nvml.node import MARK, left

pytestmark = pytest.mark.slow

IN_A_CALL = "hangs(); import ctypes; ctypes.PyDLL(None).sleep(1000)\n"
"""It holds the interpreter: no thread runs, and no signal's handler."""
WITH_A_CHILD = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1000)"], start_new_session=True)
{IN_A_CALL}"""
"""The child has a session of its own, which no signal to a group reaches."""
TORCHES = {"sleeps": "hangs(); import time; time.sleep(1000)\n", "in a call": IN_A_CALL, "with a child": WITH_A_CHILD}
STEP = "def make():\n    return lambda batch: None\n"

VERBS = {
    "check": ["check"],
    "status": ["status"],
    "probe": ["probe", "--device", "cpu", "-o", "p.yaml"],
    "batch-size": ["batch-size", "step.py:make", "--device", "cpu"],
    "apply auto": ["apply", "auto", "--", "true"],
}
KILL, TERM, INT, HUP = signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP
CODES = {KILL: -9, TERM: 143, INT: 130, HUP: 129}
GONE_SECONDS = 2.0


marks: list[str] = []


@pytest.fixture(autouse=True)
def nothing_stays_of_a_failed_test() -> Iterator[None]:
    yield
    while marks:
        left(marks.pop(), 0.0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """The temporary folder. Its name is short, since a socket's may not be long."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        yield Path(name)


def started(place: Path, folder: Path, torch: str, *words: str, **more: str) -> tuple["subprocess.Popen[str]", str]:
    """gputune, as soon as a child of it hangs; and its mark."""
    (place / "torch").mkdir()
    (place / "torch" / "__init__.py").write_text(f"def hangs(): open({str(place / 'hangs')!r}, 'w').close()\n{torch}")
    (place / "step.py").write_text(STEP)
    mark = uuid.uuid4().hex
    marks.append(mark)
    variables = {"PYTHONPATH": str(place), "TMPDIR": str(folder), "XDG_CACHE_HOME": str(place), MARK: mark}
    env = environ(GPUTUNE_PROBE="missing", **variables, **more)
    words = (sys.executable, "-P", "-m", "gputune", *words)
    process = subprocess.Popen(
        words, env=env, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until((place / "hangs").exists)
    return process, mark


def ended(process: "subprocess.Popen[str]", mark: str, number: signal.Signals) -> str:
    """What it said; it and all that it started must be gone, within two seconds of the signal."""
    sent = time.monotonic()
    process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    assert left(mark, GONE_SECONDS - (time.monotonic() - sent)) == []
    assert process.returncode == CODES[number], said
    assert "Traceback" not in said
    return said


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_left_of(verb: str, number: signal.Signals, tmp_path: Path, folder: Path) -> None:
    process, mark = started(tmp_path, folder, WITH_A_CHILD, *VERBS[verb])
    ended(process, mark, number)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("torch", TORCHES.values(), ids=TORCHES)
def test_behind_a_wrapper_it_is_the_same(torch: str, tmp_path: Path, folder: Path) -> None:
    wrapper = executable(tmp_path / "python", f'#!/bin/sh\n{sys.executable} "$@"\nexit $?\n')
    process, mark = started(tmp_path, folder, torch, "check", "--python", str(wrapper))
    ended(process, mark, KILL)
    assert list(folder.iterdir()) == []


def test_a_wrapper_that_itself_hangs(tmp_path: Path, folder: Path) -> None:
    wrapper = executable(tmp_path / "python", f"#!/bin/sh\ntouch {tmp_path}/hangs\nsleep 1000\n")
    process, mark = started(tmp_path, folder, "", "status", "--python", str(wrapper))
    ended(process, mark, KILL)


@pytest.mark.parametrize("verb", ["check", "probe"])
def test_what_keeps_a_child_may_be_killed_itself(verb: str, tmp_path: Path, folder: Path) -> None:
    process, mark = started(tmp_path, folder, WITH_A_CHILD.replace("True", "False"), *VERBS[verb])
    keepers = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "host/keeper"], capture_output=True, check=True)
    for pid in keepers.stdout.split():
        subprocess.run(["kill", "-KILL", pid], check=True)
    process.communicate(timeout=60)
    assert left(mark) == []
    assert list(folder.iterdir()) == []


def test_below_nohup_a_closed_terminal_ends_nothing(tmp_path: Path, folder: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process, mark = started(tmp_path, folder, IN_A_CALL, "check")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    ended(process, mark, TERM)
