"""The one door to the world: files, environment, NVML and child processes.

Everything above reads the machine through a `Host`, so that a test hands in a recorded one (a folder of /proc and /sys
files, a dictionary of NVML answers) and the readers cannot tell.
"""

import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gputune.host import child
from gputune.host.nvml import DEADLINE_SECONDS as NVML_DEADLINE_SECONDS
from gputune.host.nvml import ChildNvml, Nvml, NvmlAbsent
from gputune.resources.files import Files
from gputune.resources.unreadable import Cause, Unreadable

__all__ = ["NVML_DEADLINE_SECONDS", "Host", "Nvml", "NvmlAbsent", "Unreadable"]

_MOST_RECORDS = 50_000  # more than the kernel's log holds: an end even if it logs faster than this reads
TORCH_DEADLINE_SECONDS = 120.0
"""How long another interpreter may take to import torch and answer. A cold page cache can take most of a minute."""


class Host(Files):
    """This machine. `root` precedes every path. NVML has `nvml_deadline_seconds` in all or `nvml_per_call` for each."""

    def __init__(
        self,
        root: str = "/",
        environ: Mapping[str, str] | None = None,
        python: str | None = None,
        *,
        nvml_deadline_seconds: float = NVML_DEADLINE_SECONDS,
        nvml_per_call: bool = False,
    ) -> None:
        super().__init__(root, environ)
        self._nvml: ChildNvml | None = None
        self._new_nvml = partial(ChildNvml, self.environ, nvml_deadline_seconds, per_call=nvml_per_call)
        self.own_python = sys.executable
        self.python = python or self.own_python

    def read_or_empty(self, path: str) -> str:
        """The text of a file; empty if it cannot be read, where that is no gap."""
        try:
            return self.read(path)
        except Unreadable:
            return ""

    def real(self, path: str) -> str:
        return os.path.realpath(self.path(path))

    def forbidden(self, device: str) -> bool:
        """Whether permissions or a cgroup forbid this process to open a device file; only an attempt shows it."""
        try:
            os.close(os.open(self.path(device), os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
        except PermissionError:
            return True
        except (OSError, ValueError):  # a broken device is not a forbidden one
            return False
        return False

    def writable(self, folder: str) -> bool:
        """Whether this process may create files in a folder, judged by permissions and mount options alone."""
        try:
            return os.access(self.path(folder), os.W_OK | os.X_OK)
        except ValueError:
            return False

    def nearest(self, path: str) -> str:
        """The folder itself if it exists, else the nearest one above it that does."""
        start = Path(path).absolute()
        return next((str(folder) for folder in (start, *start.parents) if self.exists(str(folder))), "/")

    def names(self, folder: str) -> list[str]:
        """The sorted names in a folder; an empty list if it does not exist or cannot be read."""
        try:
            return sorted(entry.name for entry in self.path(folder).iterdir())
        except (OSError, ValueError):
            return []

    def kernel_log(self) -> str:
        """The records that the kernel's log still holds; none is older than the last boot."""
        try:
            # Without O_NONBLOCK the end of the log is a wait for its next line.
            log = os.open(self.path("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            cause: Cause | None = "no_such_file" if isinstance(error, FileNotFoundError) else None
            raise Unreadable(f"/dev/kmsg: {error.strerror}", cause) from None
        try:
            return _records(log)
        finally:
            os.close(log)

    def which(self, command: str) -> str | None:
        return shutil.which(command, path=self.environ.get("PATH", os.defpath))

    def user(self) -> tuple[int, str | None, str | None]:
        """This process's user id, and the name and home folder that /etc/passwd gives it, if any."""
        import pwd

        try:
            known = pwd.getpwuid(os.getuid())
        except KeyError:
            return os.getuid(), None, None
        return os.getuid(), known.pw_name, known.pw_dir

    def memory_bytes(self) -> int:
        import psutil

        return int(psutil.virtual_memory().total)

    def monotonic(self) -> float:
        return time.monotonic()

    def own_cpu_seconds(self) -> float:
        """The CPU seconds of this process and all its descendants, also those that have been waited for."""
        import psutil

        this = psutil.Process()
        total = 0.0
        for process in [this, *this.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.Error:  # it has just ended
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def cpu_counts(self) -> tuple[int, int | None]:
        """Logical CPUs online on the host, and physical cores where known."""
        import psutil

        return os.cpu_count() or 1, psutil.cpu_count(logical=False)

    def machine(self) -> str:
        return platform.machine()

    def nvml(self) -> Nvml:
        """NVML, in a process that `release` ends. Raises NvmlAbsent, here or at the first call, if it is missing."""
        if self._nvml is None:
            self._nvml = self._new_nvml()
        return self._nvml

    def release(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def ask_python(
        self,
        script: Path,
        deadline_seconds: float = TORCH_DEADLINE_SECONDS,
        python: str | None = None,
        *,
        meanwhile: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Run `script` under `python` (by default `self.python`); return its JSON object. Raises `Unreadable`.
        `meanwhile` is called repeatedly; true means that there is no hope for the answer. The child is killed whole.
        """
        environ = {**self.environ, "GPUTUNE_DISABLE": "1"}
        return child.ask([python or self.python, str(script)], environ, deadline_seconds, meanwhile)

    def ask_tuned(self, script: Path, *options: str) -> dict[str, Any]:
        """Run `script` with `options` and the applied profile under `self.python`, and return its JSON object."""
        return child.ask([self.python, str(script), *options], self.environ, TORCH_DEADLINE_SECONDS)


def _records(log: int) -> str:
    """All records of the log. Each read returns one, or EPIPE if the kernel has overwritten it meanwhile."""
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
    if not records:  # a kernel always logs something at boot: an empty log is one that a container masks
        raise Unreadable("/dev/kmsg: is empty here")
    return b"".join(records).decode(errors="replace")
