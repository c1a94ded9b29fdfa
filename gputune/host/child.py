"""Child processes that answer one question each, in sessions of their own, and are killed with all they started."""

import fcntl
import json
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gputune.resources.unreadable import Cause, Unreadable

TRACKER = b"multiprocessing.resource_tracker"
"""Part of the command line of multiprocessing's resource tracker, by which it is recognised."""
EXEC_SECONDS = 0.2
"""How long to wait for the command line of a process in the middle of exec, which takes well below 1 ms."""
UNANSWERED = "Unanswered"
"""The type, in `gaps`, of what a child was asking for when it died or fell silent; its name is the cause."""
HOPELESS_SECONDS = 5.0
"""How long to go on waiting for the rest of an answer once there is no hope for it."""
PATIENCE_SECONDS = 2.0
"""How long to wait for the end of a child that was killed, which a driver may keep in the kernel."""
LOOK_SECONDS = 0.2
"""How often to look whether there is still hope for an answer."""
TRACKER_SECONDS = 3.0
"""How long to wait for a tracker to end, about 0.05 s after its last client. One still in use is not waited for."""


def ask(
    words: Sequence[str],
    environ: Mapping[str, str],
    deadline_seconds: float,
    is_hopeless: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Run a command, and return the JSON object that it writes to the file descriptor passed as its last argument.

    It may write several, a line each, which are put together. One with the key `next` names what it asks for after
    that; if it then dies or is silent until the deadline, what it had answered is returned, with the reason in `gaps`
    under that name. `is_hopeless` is called again and again while it is waited for, and may take its time; once it has
    returned true, a child that has answered in part has HOPELESS_SECONDS more. Raises `Unreadable` if it cannot be
    started or has answered nothing.
    """
    reader, writer = pipe()
    child = None
    answers = _Answers()
    try:
        with signals_held():
            try:
                child = subprocess.Popen(
                    [*words, str(writer)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[writer],
                    start_new_session=True,
                    env=dict(environ),
                )
            except OSError as error:
                raise Unreadable(f"{words[0]}: {error.strerror}") from None
            finally:
                os.close(writer)
        try:
            _drain(reader, time.monotonic() + deadline_seconds, answers, is_hopeless)
        except TimeoutError as late:
            why = str(late) or f"gave no answer within {deadline_seconds:g} s"
            raise Unreadable(f"{words[0]} {why}", "no_answer") from None
        return _answer(words[0], answers, child)
    except Unreadable as fault:
        return answers.without_the_rest(fault)
    finally:
        os.close(reader)
        if child:
            end(child, PATIENCE_SECONDS)


def pipe() -> tuple[int, int]:
    """A pipe whose ends are none of a child's standard streams, also where this process was started without these.

    Raises OSError where no more files can be opened.
    """
    ends = os.pipe()
    lifted: list[int] = []
    try:
        for one in ends:
            lifted.append(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 3))
    except OSError:
        for one in lifted:
            os.close(one)
        raise
    finally:
        for one in ends:
            os.close(one)
    return lifted[0], lifted[1]


def is_readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read, or the end, within so long. Unlike select(2) it takes any descriptor."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(max(0, math.ceil(seconds * 1000))))


@contextmanager
def signals_held() -> Iterator[None]:
    """Let Python's handlers of SIGINT and SIGTERM wait until the end: one that raises in the middle of Popen would
    leave a child that nobody knows of.
    """
    if threading.current_thread() is not threading.main_thread():  # only that one runs handlers
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in held:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for one in came:
            signal.raise_signal(one)


def end(child: subprocess.Popen[Any], patience_seconds: float = 10.0) -> None:
    """Kill a child that leads its own session, with all that it started, and wait for it up to `patience_seconds`."""
    try:
        end_group(child.pid)
    except (ProcessLookupError, PermissionError):
        child.kill()
    with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing more can be done from here
        child.wait(patience_seconds)


def end_group(group: int) -> None:
    """Kill a process group. Raises ProcessLookupError if it does not exist.

    multiprocessing's resource tracker is left to end by itself, after the others: once its last client is gone, it
    unlinks the semaphores that they left in /dev/shm.
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
    """The ids of the processes in a group; empty if /proc cannot be read."""
    members = []
    with suppress(OSError):
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and os.getpgid(int(folder.name)) == group:
                    members.append(int(folder.name))
    return members


def _program(pid: int) -> bytes:
    """A process's command line; one in the middle of exec has none for a moment, which is waited out."""
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
    """A process's command line; empty if it has ended, whether or not its parent has waited for it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class _Answers:
    """What a child has written so far."""

    def __init__(self) -> None:
        self.text = b""

    def parts(self) -> list[dict[str, Any]]:
        """The JSON objects in it. Raises ValueError or RecursionError where a line is none."""
        parts = [json.loads(line) for line in self.text.splitlines() if line.strip()]
        if not all(isinstance(part, dict) for part in parts):
            raise TypeError
        return parts

    def without_the_rest(self, fault: Unreadable) -> dict[str, Any]:
        """What was answered before a fault, which becomes the gap of what was asked for next. Raises it if that is
        nothing.
        """
        self.text = self.text[: self.text.rfind(b"\n") + 1]
        with suppress(ValueError, RecursionError, TypeError):
            if parts := self.parts():
                whole = _together(parts)
                gap = {"type": UNANSWERED, "name": fault.cause, "message": str(fault)}
                if awaited := whole.pop("next", None):
                    return {**whole, "gaps": {**whole.get("gaps", {}), awaited: gap}}
        raise fault


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        whole.pop("next", None)
        gaps = {**whole.get("gaps", {}), **part.get("gaps", {})}
        whole |= part
        if gaps:
            whole["gaps"] = gaps
    return whole


def _drain(reader: int, deadline: float, answers: _Answers, is_hopeless: Callable[[], bool]) -> None:
    """Take what a child writes until it has ended. Raises TimeoutError at the deadline, with the reason if it is not
    that the time is over.
    """
    hopeless_at: float | None = None
    while True:
        now = time.monotonic()
        if hopeless_at is not None and b"\n" in answers.text and now >= hopeless_at + HOPELESS_SECONDS:
            raise TimeoutError("waits for the driver, in which NVML hangs")
        if now >= deadline:
            raise TimeoutError
        if is_readable(reader, min(deadline - now, LOOK_SECONDS)):
            chunk = os.read(reader, 65536)
            if not chunk:
                return
            answers.text += chunk
        elif hopeless_at is None and is_hopeless():
            hopeless_at = time.monotonic()


def _answer(python: str, answers: _Answers, child: subprocess.Popen[Any]) -> dict[str, Any]:
    try:
        parts = answers.parts()
        if not parts or "next" in parts[-1]:
            raise ValueError
    except TypeError:
        raise Unreadable(f"{python} answered something else") from None
    except (ValueError, RecursionError):
        try:
            code: int | None = child.wait(2)
        except subprocess.TimeoutExpired:
            code = None
        cause: Cause = "killed" if code is not None and code < 0 else "exited"
        raise Unreadable(f"{python} ended without an answer (exit code {code})", cause) from None
    return _together(parts)
