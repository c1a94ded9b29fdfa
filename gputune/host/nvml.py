"""NVML through nvidia-ml-py: every answer as plain data, every fault as `Unreadable` with its reason."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

from gputune.resources.unreadable import Unreadable

NOT_SUPPORTED = "NVML: Not Supported"
"""The reason of a gap where NVML says that hardware or driver have no such thing, which says nothing about health."""
GPU_IS_LOST, NEEDS_RESET = "NVML: GPU is lost", "NVML: GPU requires a reset"
"""The reasons where a GPU does not answer any more."""
_REASONS = {
    "NVMLError_NotSupported": NOT_SUPPORTED,
    "NVMLError_GpuIsLost": GPU_IS_LOST,
    "NVMLError_ResetRequired": NEEDS_RESET,
}


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
        except ImportError as error:
            raise Unreadable(f"nvidia-ml-py is not installed: {error}") from None
        self._pynvml = pynvml
        self._handles: dict[int, Any] = {}
        self._call(pynvml.nvmlInit)

    def _call(self, function: Any, *args: Any) -> Any:
        try:
            return _plain(function(*args))
        except self._pynvml.NVMLError as error:
            raise Unreadable(_REASONS.get(type(error).__name__, f"NVML: {error}")) from None
        except Exception as error:  # a driver's odd answer (bad struct, bad bytes) is a gap, not the end
            raise Unreadable(f"NVML: {type(error).__name__}: {error}") from None

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
        """The one call that fills a struct of its caller's."""
        struct = self._pynvml.c_nvmlGpuFabricInfo_v2_t()
        function(handle, ctypes.byref(struct))
        return struct


def _plain(value: Any) -> Any:
    """NVML's structs, and the objects that its binding makes of some, as dictionaries; arrays as lists; bytes as text."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (list, tuple, ctypes.Array)):
        return [_plain(part) for part in value]
    if type(value).__name__ == "nvmlFriendlyObject":
        return {name: _plain(part) for name, part in vars(value).items()}
    if hasattr(value, "_fields_"):
        return {field[0]: _plain(getattr(value, field[0])) for field in value._fields_}
    return value
