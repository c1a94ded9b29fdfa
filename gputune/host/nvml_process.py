"""The process that NVML is asked in: starting it, one line there and one line back within a deadline, and its end."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gputune.host.starting import is_readable, isolated_python, pipe, signals_held
from gputune.resources.unreadable import Cause, Unreadable

DEADLINE_SECONDS = 5.0
"""How long NVML may take for all its answers together, beyond the start of the process that asks it."""

START_SECONDS = 20.0
"""How long that process may take to start, which says nothing about NVML on a busy machine."""

BREAKING: tuple[Cause, ...] = ("no_answer", "killed", "exited")
"""The causes after which the process answers no more."""

_SCRIPT = Path(__file__).with_name("nvml_calls.py")
_LONGEST_LINE = 1 << 24
_LONG_SECONDS = 2.0
"""The least time, or half of the deadline, that a call is waited for before it counts as one that hangs: the calls
before it may have taken nearly all."""
_PATIENCE_SECONDS = 0.3
"""How long to wait for the end of a process that was killed. One that a driver holds in the kernel does not end."""


class NvmlAbsent(Unreadable):
    """NVML could not be initialised, so that no call is of any use."""


class AskedProcess:
    """A process that answers a line for each line it is sent."""

    def __init__(self, environ: Mapping[str, str], deadline_seconds: float, *, per_call: bool = False) -> None:
        """Start it. It has `deadline_seconds` for all answers, or `per_call` for each. Raises NvmlAbsent where
        nvidia-ml-py is not installed, or no process can be started.
        """
        self._deadline, self._left, self._per_call = deadline_seconds, deadline_seconds, per_call
        self._text = b""
        self._process, self._requests, self._answers = _started(_folder(), environ)
        self.close = weakref.finalize(self, _end, os.getpid(), self._process, self._requests, self._answers)

    def wait_for_start(self) -> None:
        """Raises NvmlAbsent where it does not start, which is no fault of NVML's."""
        try:
            self._receive(START_SECONDS, START_SECONDS)
        except Unreadable as fault:
            raise NvmlAbsent(f"the process that would ask NVML does not start: {sys.executable} {fault}") from None

    def send(self, request: Sequence[Any]) -> None:
        """A process that has ended in the meantime shows in the answer."""
        if self.close.alive:
            with suppress(BrokenPipeError):
                os.write(self._requests, json.dumps(request).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        """The next answer. Raises Unreadable, whose text continues a sentence about the call: it does not answer in
        time, or the process has ended or wrote what is no answer, after which the process is gone.
        """
        if self._per_call:
            return self._receive(self._deadline, self._deadline)
        if self._left <= 0:
            self.close()
            raise Unreadable(f"came last: NVML took all of its {self._deadline:g} s (--timeout)", "not_asked")
        begun = time.monotonic()
        answer = self._receive(max(self._left, min(_LONG_SECONDS, self._deadline / 2)), self._deadline)
        self._left -= time.monotonic() - begun
        return answer

    def _receive(self, allowed: float, deadline: float) -> dict[str, Any]:
        """The next answer, within `allowed` seconds of the deadline that a fault names."""
        if not self.close.alive:
            raise Unreadable("was not asked: the process that asks NVML has ended", "exited")
        begun = time.monotonic()
        while b"\n" not in self._text:
            waited = time.monotonic() - begun
            if waited >= allowed or not is_readable(self._answers, allowed - waited):
                self.close()
                raise Unreadable(f"does not answer within {deadline:g} s", "no_answer")
            chunk = os.read(self._answers, 1 << 16)
            if not chunk or len(self._text) > _LONGEST_LINE:
                raise self._ended()
            self._text += chunk
        line, _, self._text = self._text.partition(b"\n")
        return self._read(line)

    def _read(self, line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line)
            if "answer" in answer or len(answer["error"]) == 2:
                return dict(answer)
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        self.close()
        raise Unreadable("gave what is no answer", "exited")

    def _ended(self) -> Unreadable:
        try:
            code = self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        if code is not None and code < 0:
            return Unreadable(f"crashed the process that asked it ({_signal(-code)})", "killed")
        return Unreadable(f"ended the process that asked it (exit code {code})", "exited")


def _folder() -> str:
    """The folder that nvidia-ml-py's module is imported from. Raises NvmlAbsent where it is not installed."""
    try:
        found = importlib.util.find_spec("pynvml")
    except (ImportError, ValueError):
        found = None
    if found is None or not found.origin:
        raise NvmlAbsent("nvidia-ml-py is not installed", "not_installed")
    place = Path(found.origin).parent
    return str(place.parent if found.submodule_search_locations is not None else place)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _started(folder: str, environ: Mapping[str, str]) -> tuple["subprocess.Popen[bytes]", int, int]:
    """The process, and the ends of its pipes: to write requests to, and to read answers from."""
    if not sys.executable:
        raise NvmlAbsent("NVML is asked by another Python, and this one does not know its own path")
    ends: list[int] = []
    process = None
    try:
        ends += pipe()
        ends += pipe()
        theirs, requests, answers, theirs_too = ends
        words = [*isolated_python(), str(_SCRIPT), folder, str(theirs), str(theirs_too), str(os.getpid())]
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
    except BaseException as fault:  # also a signal's, which was held until here
        if process is not None:
            process.kill()
            process.wait()
        for one in ends:
            os.close(one)
        if isinstance(fault, (OSError, ValueError)):
            raise NvmlAbsent(f"the process that asks NVML could not be started: {fault}") from None
        raise
    os.close(theirs)
    os.close(theirs_too)
    return process, requests, answers


def _end(owner: int, process: "subprocess.Popen[bytes]", requests: int, answers: int) -> None:
    """Kill it, with what the driver's library may have started, unless this is a copy of its owner by fork."""
    os.close(requests)
    os.close(answers)
    if os.getpid() != owner:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_SECONDS)
