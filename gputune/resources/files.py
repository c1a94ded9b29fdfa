"""Reading files, environment and CPUs of the machine, also in a process that must not see gputune."""

import os
from collections.abc import Mapping
from pathlib import Path

from .unreadable import Cause, Unreadable


class Files:
    """The machine that this runs on. `root` is prepended to every path; `environ` replaces this process's own."""

    def __init__(self, root: str = "/", environ: Mapping[str, str] | None = None) -> None:
        self.root = Path(root)
        self.environ: Mapping[str, str] = os.environ if environ is None else environ

    def path(self, path: str) -> Path:
        return self.root / str(Path(path).absolute()).lstrip("/")

    def _name(self, path: str) -> str:
        """`path` as text: of a deep path of a control group, pathlib takes a hundred times as long as the kernel."""
        if not path.startswith("/"):
            return str(self.path(path))
        return f"{str(self.root).rstrip('/')}/{path.lstrip('/')}"

    def read(self, path: str) -> str:
        """The text of a file. Raises `Unreadable` with the reason."""
        try:
            with open(self._name(path), encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - see _name
                return file.read()
        except (OSError, ValueError) as error:
            cause: Cause | None = "no_such_file" if isinstance(error, FileNotFoundError) else None
            raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}", cause) from None

    def exists(self, path: str) -> bool:
        try:
            return os.path.exists(self._name(path))  # noqa: PTH110 - see _name
        except OSError:  # there is no working folder any more
            return False

    def space_bytes(self, path: str) -> tuple[int, int]:
        """Total and available bytes of the file system that holds `path`."""
        try:
            answer = os.statvfs(self.path(path))
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror}") from None
        return answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize

    def affinity(self) -> frozenset[int]:
        """The CPUs that this process may run on, by cpusets and taskset; a quota does not change them."""
        return frozenset(os.sched_getaffinity(0))
