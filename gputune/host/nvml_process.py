"""The process that NVML is asked in: starting it, one line there and one line back within a deadline, and its end."""

import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gputune.host.child import signals_held
from gputune.resources.unreadable import Cause, Unreadable

DEADLINE_SECONDS = 5.0
"""How long NVML may take for all its answers together, beyond the start of the process that asks it."""

START_SECONDS = 20.0
"""How long that process may take to start, which says nothing about NVML on a busy machine."""

BREAKING: tuple[Cause, ...] = ("no_answer", "killed", "exited")
"""The causes after which the process answers no more."""

_SCRIPT = Path(__file__).with_name("nvml_calls.py")
_LONGEST_LINE = 1 << 24
_PATIENCE_SECONDS = 0.3
"""How long to wait for the end of a process that was killed. One that a driver holds in the kernel does not end."""


class NvmlAbsent(Unreadable):
    """NVML could not be initialised, so that no call is of any use."""


class AskedProcess:
    """A process that answers a line for each line it is sent."""

    def __init__(self, environ: Mapping[str, str], deadline_seconds: float) -> None:
        """Start it. Raises NvmlAbsent where nvidia-ml-py is not installed, or no process can be started."""
        found = importlib.util.find_spec("pynvml")
        if found is None or not found.origin:
            raise NvmlAbsent("nvidia-ml-py is not installed", "not_installed")
        self._deadline, self._left = deadline_seconds, deadline_seconds
        self._text = b""
        self._started_at: float | None = None
        self._process, self._requests, self._answers = _started(str(Path(found.origin).parent), environ)
        self.close = weakref.finalize(self, _end, self._process, self._requests, self._answers)

    def wait_for_start(self) -> None:
        """Raises Unreadable where it does not start."""
        left, self._left = self._left, START_SECONDS
        try:
            self.receive()
        except Unreadable as fault:
            raise Unreadable(f"the process that asks NVML {fault}", fault.cause) from None
        self._left = left

    def is_overdue(self, lines: int) -> bool:
        """Whether it has started, and so many lines have not come within the deadline. Does not wait."""
        alive = True
        while alive and self.close.alive and select.select([self._answers], [], [], 0)[0]:
            alive = self._take()
        if self._started_at is None and b"\n" in self._text:
            self._started_at = time.monotonic()
        if self._started_at is None or not alive or self._text.count(b"\n") >= lines:
            return False
        if time.monotonic() - self._started_at < self._deadline:
            return False
        self._left = 0.0
        return True

    def send(self, request: Sequence[Any]) -> None:
        """A process that has ended in the meantime shows in the answer."""
        with suppress(BrokenPipeError):
            os.write(self._requests, json.dumps(request).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        """The next answer. Raises Unreadable, whose text continues a sentence about the call: it does not answer in
        time, or the process has ended or wrote what is no answer, after which the process is gone.
        """
        if not self.close.alive:
            raise Unreadable("was not asked: the process that asks NVML has ended", "exited")
        begun = time.monotonic()
        while b"\n" not in self._text:
            left = self._left - (time.monotonic() - begun)
            if len(self._text) > _LONGEST_LINE or left <= 0 or not select.select([self._answers], [], [], left)[0]:
                self.close()
                raise Unreadable(f"does not answer within {self._deadline:g} s", "no_answer")
            if not self._take():
                raise self._ended()
        self._left -= time.monotonic() - begun
        line, _, self._text = self._text.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _take(self) -> bool:
        """Take what it has written; False where it has ended."""
        chunk = os.read(self._answers, 1 << 16)
        self._text += chunk
        return bool(chunk)

    def _ended(self) -> Unreadable:
        try:
            code = self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        if code is not None and code < 0:
            return Unreadable(f"crashed the process that asked it ({_signal(-code)})", "killed")
        return Unreadable(f"ended the process that asked it (exit code {code})", "exited")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _started(folder: str, environ: Mapping[str, str]) -> tuple["subprocess.Popen[bytes]", int, int]:
    """The process, and the ends of its pipes: to write requests to, and to read answers from."""
    theirs, requests = os.pipe()
    answers, theirs_too = os.pipe()
    # Isolated: a user's modules and site hooks must not run in it.
    words = [sys.executable, "-I", "-S", str(_SCRIPT), folder, str(theirs), str(theirs_too)]
    try:
        with signals_held():
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs, theirs_too],
                start_new_session=True,
                env=dict(environ),
            )
    except (OSError, ValueError) as fault:
        os.close(requests)
        os.close(answers)
        raise NvmlAbsent(f"the process that asks NVML could not be started: {fault}") from None
    finally:
        os.close(theirs)
        os.close(theirs_too)
    return process, requests, answers


def _end(process: "subprocess.Popen[bytes]", requests: int, answers: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # with what the driver's library may have started
    os.close(requests)
    os.close(answers)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_SECONDS)
