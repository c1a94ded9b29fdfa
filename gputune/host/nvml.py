"""NVML through nvidia-ml-py: every answer as plain data, every error as `Unreadable` with its reason and cause."""

import ctypes
from typing import Any, Protocol

from gputune.resources.unreadable import Cause, Unreadable

ERRORS: dict[str, tuple[str, Cause]] = {
    "NVMLError_NotSupported": ("Not Supported", "not_supported"),
    "NVMLError_FunctionNotFound": ("Function Not Found", "no_such_call"),
    "NVMLError_Deprecated": ("this call is deprecated", "no_such_call"),
    "NVMLError_InvalidArgument": ("Invalid Argument", "invalid_argument"),
    "NVMLError_GpuIsLost": ("GPU is lost", "gpu_lost"),
    "NVMLError_ResetRequired": ("GPU requires a reset", "needs_reset"),
    "NVMLError_LibRmVersionMismatch": ("Driver/library version mismatch", "version_mismatch"),
}
"""The errors that gputune distinguishes, by nvidia-ml-py's names, worded alike for all versions of NVML."""


def error(name: str, text: str) -> Unreadable:
    """The exception for an error of NVML, given its class name in nvidia-ml-py and its text."""
    text, cause = ERRORS.get(name, (text, None))
    return Unreadable(f"NVML: {text}", cause)


class Nvml(Protocol):
    """NVML's answers. Every call may raise `Unreadable`."""

    def system(self, name: str) -> Any:
        """`nvmlSystemGet<name>()`."""

    def count(self) -> int:
        """How many GPUs NVML lists."""

    def device(self, index: int, name: str, *args: Any) -> Any:
        """`nvmlDeviceGet<name>(handle of index, *args)`."""


class LibraryNvml:
    """NVML through nvidia-ml-py."""

    def __init__(self) -> None:
        try:
            import pynvml
        except ImportError as fault:
            raise Unreadable(f"nvidia-ml-py is not installed: {fault}", "not_installed") from None
        self._pynvml = pynvml
        self._handles: dict[int, Any] = {}
        self._call(pynvml.nvmlInit)

    def _call(self, function: Any, *args: Any) -> Any:
        try:
            return _plain(function(*args))
        except self._pynvml.NVMLError as fault:
            raise error(type(fault).__name__, str(fault)) from None
        except Exception as fault:  # a driver's odd answer (bad struct, bad bytes) is a gap, not the end
            raise Unreadable(f"NVML: {type(fault).__name__}: {fault}") from None

    def _function(self, name: str) -> Any:
        function = getattr(self._pynvml, name, None)
        if function is None:
            raise Unreadable(f"NVML: this nvidia-ml-py has no {name}")
        return function

    def system(self, name: str) -> Any:
        return self._call(self._function(f"nvmlSystemGet{name}"))

    def count(self) -> int:
        return int(self._call(self._pynvml.nvmlDeviceGetCount))

    def device(self, index: int, name: str, *args: Any) -> Any:
        if index not in self._handles:
            self._handles[index] = self._call(self._pynvml.nvmlDeviceGetHandleByIndex, index)
        function = self._function(f"nvmlDeviceGet{name}")
        if name == "GpuFabricInfoV":
            return self._call(self._filled, function, self._handles[index])
        return self._call(function, self._handles[index], *args)

    def _filled(self, function: Any, handle: Any) -> Any:
        """Call a function that fills in a struct which its caller provides."""
        struct = self._pynvml.c_nvmlGpuFabricInfo_v2_t()
        function(handle, ctypes.byref(struct))
        return struct


def _plain(value: Any) -> Any:
    """NVML's structs, and nvidia-ml-py's objects for some of them, as dictionaries; arrays as lists; bytes as text."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (list, tuple, ctypes.Array)):
        return [_plain(part) for part in value]
    if type(value).__name__ == "nvmlFriendlyObject":
        return {name: _plain(part) for name, part in vars(value).items()}
    if hasattr(value, "_fields_"):
        return {field[0]: _plain(getattr(value, field[0])) for field in value._fields_}
    return value
