"""Child processes that are asked something, each in a session of its own, and ended whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gputune.resources.unreadable import Unreadable

TRACKER = b"multiprocessing.resource_tracker"
"""What the command line of multiprocessing's resource tracker holds."""
EXEC_SECONDS = 0.2
"""How long a process may be without a command line while it becomes another program: mostly less than a thousandth of this."""
TRACKER_SECONDS = 3.0
"""It takes hundredths of a second once the others are gone; one that somebody else still uses is not waited for."""


def ask(words: Sequence[str], environ: Mapping[str, str], deadline_seconds: float) -> dict[str, Any]:
    """Run a Python with a script; read the JSON object that it writes to the descriptor that it is given as its last argument.

    Raises `Unreadable`: it cannot be started, gives no answer until the deadline, or none that is one.
    """
    reader, writer = os.pipe()
    try:
        asked = subprocess.Popen(
            [*words, str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writer],
            start_new_session=True,
            env=dict(environ),
        )
    except OSError as error:
        os.close(reader)
        raise Unreadable(f"{words[0]}: {error.strerror}") from None
    finally:
        os.close(writer)
    try:
        return _answer(words[0], _drain(reader, time.monotonic() + deadline_seconds), asked)
    except TimeoutError:
        raise Unreadable(f"{words[0]} gave no answer within {deadline_seconds:g} s") from None
    finally:
        os.close(reader)
        end(asked)


def end(child: subprocess.Popen[Any], patience_seconds: float = 10.0) -> None:
    """Kill a child that leads its own session, with all that it started, and wait for it (not for ever)."""
    try:
        end_group(child.pid)
    except (ProcessLookupError, PermissionError):
        child.kill()
    with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing more can be done from here
        child.wait(patience_seconds)


def end_group(group: int) -> None:
    """Kill a process group. Raises ProcessLookupError where there is none.

    multiprocessing's resource tracker goes last, and by itself: once nobody is left whom it serves, it unlinks the semaphores
    that they left in /dev/shm.
    """
    trackers = []
    for pid in _members(group):
        if TRACKER in _program(pid):
            trackers.append(pid)
        elif pid != os.getpid():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    patience = time.monotonic() + TRACKER_SECONDS
    while any(map(_command_line, trackers)) and time.monotonic() < patience:
        time.sleep(0.005)
    os.killpg(group, signal.SIGKILL)


def _members(group: int) -> list[int]:
    """Those that can be seen: nothing, where /proc is not readable."""
    found = []
    with suppress(OSError):
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and os.getpgid(int(folder.name)) == group:
                    found.append(int(folder.name))
    return found


def _program(pid: int) -> bytes:
    """The command line, also of a process that is just becoming another program: for a moment it has none."""
    patience = time.monotonic() + EXEC_SECONDS
    while not (line := _command_line(pid)) and not _has_ended(pid) and time.monotonic() < patience:
        time.sleep(0.001)
    return line


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


def _command_line(pid: int) -> bytes:
    """Empty for one that has ended, also where nobody has waited for it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _drain(reader: int, deadline: float) -> bytes:
    import select

    answer = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            raise TimeoutError
        chunk = os.read(reader, 65536)
        if not chunk:
            return answer
        answer += chunk


def _answer(python: str, text: bytes, child: subprocess.Popen[Any]) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        try:
            code: int | None = child.wait(2)
        except subprocess.TimeoutExpired:
            code = None
        raise Unreadable(f"{python} ended without an answer (exit code {code})") from None
    if not isinstance(answer, dict):
        raise Unreadable(f"{python} answered something else")
    return answer
