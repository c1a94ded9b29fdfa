"""The one door to the world: files, environment, NVML and child processes.

Everything above reads the machine through a `Host`, so that a test hands in a recorded one (a folder of /proc and /sys
files, a dictionary of NVML answers) and the readers cannot tell.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

_MOST_RECORDS = 1_000_000  # of a kernel that logs faster than they are read

TORCH_DEADLINE_SECONDS = 120.0
"""How long another interpreter may take to import torch and answer. A cold page cache can take most of a minute."""


NOT_SUPPORTED = "NVML: Not Supported"
"""The reason of a gap where NVML says that hardware or driver have no such thing, which says nothing about health."""


class Unreadable(Exception):
    """Something could not be read; the text is the reason that a Gap will show."""


class Nvml(Protocol):
    """NVML's answers. Every call may raise `Unreadable`."""

    def system(self, name: str) -> Any:
        """`nvmlSystemGet<name>()`."""

    def count(self) -> int:
        """How many GPUs NVML lists."""

    def device(self, index: int, name: str, *args: Any) -> Any:
        """`nvmlDeviceGet<name>(handle of index, *args)`."""


class Host:
    """The machine that this runs on. `root` is put before every path, `environ` and `python` replace this process's own."""

    def __init__(self, root: str = "/", environ: Mapping[str, str] | None = None, python: str | None = None) -> None:
        self.root = Path(root)
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.python = python or sys.executable

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        """The text of a file, or `Unreadable` with the reason."""
        try:
            return self.path(path).read_text(errors="replace")
        except (OSError, ValueError) as error:
            raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from None

    def exists(self, path: str) -> bool:
        try:
            return self.path(path).exists()
        except (OSError, ValueError):
            return False

    def real(self, path: str) -> str:
        """The path without symbolic links in it."""
        return os.path.realpath(self.path(path))

    def writable(self, folder: str) -> bool:
        """Whether this process may make files in a folder: its permissions and the file system's, without trying."""
        try:
            return os.access(self.path(folder), os.W_OK | os.X_OK)
        except ValueError:
            return False

    def names(self, folder: str) -> list[str]:
        """The sorted names in a folder; empty where there is none."""
        try:
            return sorted(entry.name for entry in self.path(folder).iterdir())
        except (OSError, ValueError):
            return []

    def space_bytes(self, path: str) -> tuple[int, int]:
        """Total and available bytes of the file system that holds `path`."""
        try:
            answer = os.statvfs(self.path(path))
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror}") from None
        return answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize

    def kernel_log(self) -> str:
        """What the kernel's log still holds, since boot at most."""
        try:
            # Without O_NONBLOCK the end of the log is a wait for its next line.
            log = os.open(self.path("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise Unreadable(f"/dev/kmsg: {error.strerror}") from None
        try:
            return _records(log)
        finally:
            os.close(log)

    def which(self, command: str) -> str | None:
        """The file that a command is, as a shell of this environment would find it."""
        return shutil.which(command, path=self.environ.get("PATH", os.defpath))

    def user(self) -> tuple[int, str | None]:
        """This process's user id, and its name where the id has one."""
        import pwd

        try:
            return os.getuid(), pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            return os.getuid(), None

    def affinity(self) -> frozenset[int]:
        """The CPUs that this process may run on (cpusets and taskset; no quota)."""
        return frozenset(os.sched_getaffinity(0))

    def memory_bytes(self) -> int:
        """The host's memory, whatever a container's limit."""
        import psutil

        return int(psutil.virtual_memory().total)

    def cpu_counts(self) -> tuple[int, int | None]:
        """Logical CPUs online on the host, and physical cores where known."""
        import psutil

        return os.cpu_count() or 1, psutil.cpu_count(logical=False)

    def machine(self) -> str:
        return platform.machine()

    def nvml(self) -> Nvml:
        """NVML, initialised; `Unreadable` where the library or the driver is missing."""
        return _LibraryNvml()

    def ask_python(self, script: Path, deadline_seconds: float = TORCH_DEADLINE_SECONDS) -> dict[str, Any]:
        """Run `script` in `self.python` and read the JSON object that it writes to the descriptor in its first argument.

        The child gets a session of its own and is killed whole at the deadline. Raises `Unreadable`.
        """
        reader, writer = os.pipe()
        environ = {**self.environ, "GPUTUNE_DISABLE": "1"}
        try:
            child = subprocess.Popen(
                [self.python, str(script), str(writer)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[writer],
                start_new_session=True,
                env=environ,
            )
        except OSError as error:
            os.close(reader)
            raise Unreadable(f"{self.python}: {error.strerror}") from None
        finally:
            os.close(writer)
        try:
            return _answer(_drain(reader, time.monotonic() + deadline_seconds), child)
        except TimeoutError:
            raise Unreadable(f"{self.python} gave no answer within {deadline_seconds:g} s") from None
        finally:
            os.close(reader)
            end(child)


def end(child: subprocess.Popen[Any], patience_seconds: float = 10.0) -> None:
    """Kill a child that leads its own session, with all that it started, and wait for it (not for ever)."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        child.kill()
    with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing more can be done from here
        child.wait(patience_seconds)


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


def _records(log: int) -> str:
    """Every record that is there now: each read gives one, or EPIPE where the oldest was overwritten meanwhile."""
    records = []
    for _ in range(_MOST_RECORDS):
        try:
            record = os.read(log, 8192)
        except BlockingIOError:
            break
        except BrokenPipeError:
            continue
        except OSError as error:
            raise Unreadable(f"/dev/kmsg: {error.strerror}") from None
        if not record:
            break
        records.append(record)
    return b"".join(records).decode(errors="replace")


def _answer(text: bytes, child: subprocess.Popen[Any]) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        try:
            code: int | None = child.wait(2)
        except subprocess.TimeoutExpired:
            code = None
        raise Unreadable(f"the Python that was asked about torch ended without an answer (exit code {code})") from None
    if not isinstance(answer, dict):
        raise Unreadable("the Python that was asked about torch answered something else")
    return answer


class _LibraryNvml:
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
        except self._pynvml.NVMLError_NotSupported:
            raise Unreadable(NOT_SUPPORTED) from None
        except self._pynvml.NVMLError as error:
            raise Unreadable(f"NVML: {error}") from None
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
