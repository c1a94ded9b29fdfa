"""NVML, asked in a child process: a driver that hangs or crashes costs the answers of that child, not gputune's end.

Every answer is plain data, every error an `Unreadable` with its reason and cause.
"""

import importlib.util
import json
import os
import signal
import sys
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from gputune.host.child import JsonChild
from gputune.host.kept import isolated_python
from gputune.resources.unreadable import Cause, Unreadable

DEADLINE_SECONDS = 5.0
"""How long NVML may take for all its answers together, beyond the start of the process that asks it."""
START_SECONDS = 20.0
"""How long that process may take to start, which says nothing about NVML on a busy machine."""
BREAKING: tuple[Cause, ...] = ("no_answer", "killed", "exited")
"""The causes after which the process answers no more."""
_LONG_SECONDS = 2.0
"""The least time, or half of the deadline, that a call is waited for before it counts as one that hangs: the calls
before it may have taken nearly all."""
_PATIENCE_SECONDS = 0.3
"""How long to wait for the end of a process that was killed. One that a driver holds in the kernel does not end."""
_SCRIPT = Path(__file__).with_name("nvml_calls.py")

ERRORS: dict[str, tuple[str, Cause]] = {
    "NVMLError_NotSupported": ("Not Supported", "not_supported"),
    "NVMLError_FunctionNotFound": ("Function Not Found", "no_such_call"),
    "NVMLError_Deprecated": ("this call is deprecated", "no_such_call"),
    "NVMLError_InvalidArgument": ("Invalid Argument", "invalid_argument"),
    "NVMLError_GpuIsLost": ("GPU is lost", "gpu_lost"),
    "NVMLError_ResetRequired": ("GPU requires a reset", "needs_reset"),
    "NVMLError_Unknown": ("Unknown Error", "unknown_error"),
    "NVMLError_Timeout": ("Timeout", "timeout"),
    "NVMLError_NoPermission": ("Insufficient Permissions", "no_permission"),
    "NVMLError_DriverNotLoaded": ("Driver Not Loaded", "driver_not_loaded"),
    "NVMLError_LibraryNotFound": ("NVML Shared Library Not Found", "library_not_found"),
    "NVMLError_InsufficientPower": ("Insufficient External Power", "no_power"),
    "NVMLError_LibRmVersionMismatch": ("Driver/library version mismatch", "version_mismatch"),
}
"""The errors that gputune distinguishes, by nvidia-ml-py's names, worded alike for all versions of NVML."""


def error(name: str, text: str) -> Unreadable:
    """The exception for an error of NVML, given its class name in nvidia-ml-py and its text."""
    text, cause = ERRORS.get(name, (text, None))
    return Unreadable(f"NVML: {text}", cause)


class NvmlAbsent(Unreadable):
    """NVML could not be initialised, so that no call is of any use."""


class Nvml(Protocol):
    """NVML's answers. Every call may raise `Unreadable`, the first one `NvmlAbsent`."""

    def system(self, name: str) -> Any:
        """`nvmlSystemGet<name>()`."""

    def count(self) -> int:
        """How many GPUs NVML lists."""

    def device(self, index: int, name: str, *args: Any) -> Any:
        """`nvmlDeviceGet<name>(handle of index, *args)`."""


class _Child(JsonChild[dict[str, Any]]):
    def decode(self, line: bytes) -> dict[str, Any]:
        said = json.loads(line)
        if isinstance(said, dict) and ("answer" in said or len(said.get("error") or ()) == 2):
            return said
        raise ValueError


class ChildNvml:
    """NVML in a process of its own, which starts at once and is waited for at the first call.
    A call that hangs or ends the process raises with `no_answer`, `killed` or `exited`; all others then `not_asked`.
    """

    def __init__(
        self, environ: Mapping[str, str], deadline_seconds: float = DEADLINE_SECONDS, *, per_call: bool = False
    ) -> None:
        """Give it `deadline_seconds` for all answers, or `per_call` for each. Raises NvmlAbsent if it cannot start."""
        if not sys.executable:
            raise NvmlAbsent("NVML is asked by another Python, and this one does not know its own path")
        words = [*isolated_python(), str(_SCRIPT), _folder(), str(os.getpid())]
        try:
            self._child = _Child(words, environ, folder=None)
        except (OSError, ValueError) as fault:
            raise NvmlAbsent(f"the process that asks NVML could not be started: {fault}") from None
        self.close = weakref.finalize(self, self._child.close, _PATIENCE_SECONDS)
        self._deadline, self._left, self._per_call = deadline_seconds, deadline_seconds, per_call
        self._count: int | Unreadable | None = None
        self._absent: NvmlAbsent | None = None
        self._broken: str | None = None
        self._faults: dict[str, Unreadable] = {}
        self._handles: set[int] = set()

    def system(self, name: str) -> Any:
        return self._ask(f"nvmlSystemGet{name}", "system", name)

    def count(self) -> int:
        self._open()
        if isinstance(self._count, Unreadable):
            raise self._count
        return int(self._count or 0)

    def device(self, index: int, name: str, *args: Any) -> Any:
        if index not in self._handles:
            self._ask(f"nvmlDeviceGetHandleByIndex of GPU {index}", "handle", index)
            self._handles.add(index)
        return self._ask(f"nvmlDeviceGet{name} of GPU {index}", "device", index, name, *args)

    def _open(self) -> None:
        """Wait until NVML has come up and said how many GPUs it lists. Raises NvmlAbsent where it does not come up."""
        if self._absent:
            raise self._absent
        if self._count is not None:
            return
        try:
            self._wait_for_start()
            self._receive("nvmlInit")
        except Unreadable as fault:
            self._absent = fault if isinstance(fault, NvmlAbsent) else NvmlAbsent(str(fault), fault.cause)
            raise self._absent from None
        try:
            self._count = int(self._receive("nvmlDeviceGetCount"))
        except Unreadable as fault:
            self._count = fault

    def _wait_for_start(self) -> None:
        try:
            self._answer(START_SECONDS, START_SECONDS)
        except Unreadable as fault:  # which is none of NVML's
            raise NvmlAbsent(f"the process that would ask NVML does not start: {sys.executable} {fault}") from None

    def _ask(self, call: str, *request: Any) -> Any:
        self._open()
        if call in self._faults:
            raise self._faults[call]
        if self._broken:
            raise Unreadable(f"NVML: not asked, since {self._broken}", "not_asked")
        try:
            with suppress(ConnectionError):  # how it ended shows in the answer
                self._child.send(json.dumps(request).encode() + b"\n")
            return self._receive(call)
        except Unreadable as fault:
            if fault.cause in BREAKING or request[0] == "handle":
                self._faults[call] = fault
            raise

    def _receive(self, call: str) -> Any:
        try:
            said = self._next()
        except Unreadable as fault:
            self._broken = f"{call} {fault}"
            raise Unreadable(f"NVML: {self._broken}", fault.cause) from None
        if "error" in said:
            raise _error_of(*said["error"])
        return said["answer"]

    def _next(self) -> dict[str, Any]:
        """The next answer. Raises Unreadable, whose text continues a sentence about the call."""
        if self._per_call:
            return self._answer(self._deadline, self._deadline)
        if self._left <= 0:
            self.close()
            raise Unreadable(f"came last: NVML took all of its {self._deadline:g} s (--timeout)", "not_asked")
        begun = time.monotonic()
        said = self._answer(max(self._left, min(_LONG_SECONDS, self._deadline / 2)), self._deadline)
        self._left -= time.monotonic() - begun
        return said

    def _answer(self, seconds: float, deadline: float) -> dict[str, Any]:
        """An answer within `seconds` of the deadline that a fault names, after which the process is gone."""
        try:
            return self._child.receive(seconds)
        except TimeoutError:
            fault = Unreadable(f"does not answer within {deadline:g} s", "no_answer")
        except ConnectionError:
            code = self._child.kept.code(_PATIENCE_SECONDS)
            if code is not None and code < 0:
                fault = Unreadable(f"crashed the process that asked it ({_signal(-code)})", "killed")
            else:
                fault = Unreadable(f"ended the process that asked it (exit code {code})", "exited")
        except (ValueError, OverflowError):
            fault = Unreadable("gave what is no answer", "exited")
        self.close()
        raise fault


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


def _error_of(kind: str, text: str) -> Unreadable:
    if kind in ("ImportError", "ModuleNotFoundError"):
        return Unreadable(f"nvidia-ml-py is not installed: {text}", "not_installed")
    if kind == "AttributeError":
        return Unreadable(f"NVML: this nvidia-ml-py lacks the call ({text})")
    if kind.startswith("NVML"):
        return error(kind, text)
    return Unreadable(f"NVML: {kind}: {text}")  # nvidia-ml-py's own fault over a driver's odd answer
