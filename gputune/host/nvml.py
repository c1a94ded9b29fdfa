"""NVML, asked in a child process: a driver that hangs or crashes costs the answers of that child, not gputune's end.

Every answer is plain data, every error an `Unreadable` with its reason and cause.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from gputune.host.nvml_process import BREAKING, DEADLINE_SECONDS, AskedProcess, NvmlAbsent
from gputune.resources.unreadable import Cause, Unreadable

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


class Nvml(Protocol):
    """NVML's answers. Every call may raise `Unreadable`, the first one `NvmlAbsent`."""

    def system(self, name: str) -> Any:
        """`nvmlSystemGet<name>()`."""

    def count(self) -> int:
        """How many GPUs NVML lists."""

    def device(self, index: int, name: str, *args: Any) -> Any:
        """`nvmlDeviceGet<name>(handle of index, *args)`."""


class ChildNvml:
    """NVML in a process of its own, which starts at once and is waited for at the first call.

    A call that does not answer in time, or that ends the process, raises with the cause `no_answer`, `killed` or
    `exited` whenever it is asked; every other call raises with `not_asked` from then on.
    """

    def __init__(
        self, environ: Mapping[str, str], deadline_seconds: float = DEADLINE_SECONDS, *, per_call: bool = False
    ) -> None:
        """Start the process, which has `deadline_seconds` for all answers, or `per_call` for each.

        Raises NvmlAbsent where nvidia-ml-py is not installed, or no process can be started.
        """
        self._process = AskedProcess(environ, deadline_seconds, per_call=per_call)
        self._count: int | Unreadable | None = None
        self._absent: NvmlAbsent | None = None
        self._broken: str | None = None
        self._faults: dict[str, Unreadable] = {}
        self._handles: set[int] = set()

    def system(self, name: str) -> Any:
        return self._ask(f"nvmlSystemGet{name}", ("system", name))

    def count(self) -> int:
        self._open()
        if isinstance(self._count, Unreadable):
            raise self._count
        return int(self._count or 0)

    def device(self, index: int, name: str, *args: Any) -> Any:
        if index not in self._handles:
            self._ask(f"nvmlDeviceGetHandleByIndex of GPU {index}", ("handle", index))
            self._handles.add(index)
        return self._ask(f"nvmlDeviceGet{name} of GPU {index}", ("device", index, name, *args))

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _open(self) -> None:
        """Wait until NVML has come up and said how many GPUs it lists. Raises NvmlAbsent where it does not come up."""
        if self._absent:
            raise self._absent
        if self._count is not None:
            return
        try:
            self._process.wait_for_start()
            self._receive("nvmlInit")
        except NvmlAbsent as fault:
            self._absent = fault
            raise
        except Unreadable as fault:
            self._absent = NvmlAbsent(str(fault), fault.cause)
            raise self._absent from None
        try:
            self._count = int(self._receive("nvmlDeviceGetCount"))
        except Unreadable as fault:
            self._count = fault

    def _ask(self, call: str, request: tuple[Any, ...]) -> Any:
        self._open()
        if call in self._faults:
            raise self._faults[call]
        if self._broken:
            raise Unreadable(f"NVML: not asked, since {self._broken}", "not_asked")
        try:
            self._process.send(request)
            return self._receive(call)
        except Unreadable as fault:
            if fault.cause in BREAKING or request[0] == "handle":
                self._faults[call] = fault
            raise

    def _receive(self, call: str) -> Any:
        try:
            said = self._process.receive()
        except Unreadable as fault:
            self._broken = f"{call} {fault}"
            raise Unreadable(f"NVML: {self._broken}", fault.cause) from None
        if "error" in said:
            raise _error_of(*said["error"])
        return said["answer"]


def _error_of(kind: str, text: str) -> Unreadable:
    """The exception for one that the process met, by its type's name and its text."""
    if kind in ("ImportError", "ModuleNotFoundError"):
        return Unreadable(f"nvidia-ml-py is not installed: {text}", "not_installed")
    if kind == "AttributeError":
        return Unreadable(f"NVML: this nvidia-ml-py lacks the call ({text})")
    if kind.startswith("NVML"):
        return error(kind, text)
    return Unreadable(f"NVML: {kind}: {text}")  # nvidia-ml-py's own fault over a driver's odd answer
