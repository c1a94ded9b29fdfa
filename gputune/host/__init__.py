"""The one door to the world: files, environment, NVML and child processes.

Everything above reads the machine through a `Host`, so that a test hands in a recorded one (a folder of /proc and /sys
files, a dictionary of NVML answers) and the readers cannot tell.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gputune.host import child, kernel_log
from gputune.host.child import end, end_group
from gputune.host.nvml import GPU_IS_LOST, NEEDS_RESET, NOT_SUPPORTED, LibraryNvml, Nvml
from gputune.resources.files import Files
from gputune.resources.unreadable import Unreadable

__all__ = ["GPU_IS_LOST", "NEEDS_RESET", "NOT_SUPPORTED", "Host", "Nvml", "Unreadable", "end", "end_group"]

TORCH_DEADLINE_SECONDS = 120.0
"""How long another interpreter may take to import torch and answer. A cold page cache can take most of a minute."""


class Host(Files):
    """The machine that this runs on. `root` is put before every path, `environ` and `python` replace this process's own."""

    def __init__(self, root: str = "/", environ: Mapping[str, str] | None = None, python: str | None = None) -> None:
        super().__init__(root, environ)
        self.own_python = sys.executable
        self.python = python or self.own_python

    def real(self, path: str) -> str:
        """The path without symbolic links in it."""
        return os.path.realpath(self.path(path))

    def forbidden(self, device: str) -> bool:
        """Whether this process may not open a device file, by its permissions or by its cgroup, which shows in no other way."""
        try:
            os.close(os.open(self.path(device), os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
        except PermissionError:
            return True
        except (OSError, ValueError):  # a broken device is not a forbidden one
            return False
        return False

    def writable(self, folder: str) -> bool:
        """Whether this process may make files in a folder: its permissions and the file system's, without trying."""
        try:
            return os.access(self.path(folder), os.W_OK | os.X_OK)
        except ValueError:
            return False

    def nearest(self, path: str) -> str:
        """The folder itself, or the first above it that exists."""
        path = str(Path(path).absolute())
        while path.strip("/") and not self.exists(path):
            path = path.rpartition("/")[0] or "/"
        return path

    def names(self, folder: str) -> list[str]:
        """The sorted names in a folder; empty where there is none."""
        try:
            return sorted(entry.name for entry in self.path(folder).iterdir())
        except (OSError, ValueError):
            return []

    def kernel_log(self) -> str:
        """What the kernel's log still holds, since boot at most."""
        return kernel_log.read(self.path("/dev/kmsg"))

    def which(self, command: str) -> str | None:
        """The file that a command is, as a shell of this environment would find it."""
        return shutil.which(command, path=self.environ.get("PATH", os.defpath))

    def user(self) -> tuple[int, str | None, str | None]:
        """This process's user id, with its name and its home where the id has them."""
        import pwd

        try:
            known = pwd.getpwuid(os.getuid())
        except KeyError:
            return os.getuid(), None, None
        return os.getuid(), known.pw_name, known.pw_dir

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
        return LibraryNvml()

    def ask_python(
        self, script: Path, deadline_seconds: float = TORCH_DEADLINE_SECONDS, python: str | None = None
    ) -> dict[str, Any]:
        """Run `script` in `python` (`self.python`) and read the JSON object that it writes to the descriptor that it is given.

        The child gets a session of its own and is killed whole at the deadline. Raises `Unreadable`.
        """
        environ = {**self.environ, "GPUTUNE_DISABLE": "1"}
        return child.ask([python or self.python, str(script)], environ, deadline_seconds)

    def ask_tuned(self, script: Path, *options: str) -> dict[str, Any]:
        """The same of `self.python`, with what `gputune apply` set in force, and with options for the script."""
        return child.ask([self.python, str(script), *options], self.environ, TORCH_DEADLINE_SECONDS)
