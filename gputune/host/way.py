"""The way to a file, as the kernel goes it: each folder from / on, and each symbolic link."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOST_LINKS = 40
"""As many symbolic links the kernel follows on one way."""


class Step(NamedTuple):
    """A folder or a link on the way to a file, or the file. (A dataclass would delay every start by another 1 ms.)"""

    path: str
    """Without a link in it, but for itself."""
    status: os.stat_result
    mounted: bool
    """It is the top of a mounted file system."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_sticky(self) -> bool:
        """Whether it is a folder in which each may remove only what is his own."""
        return self.is_folder and bool(self.status.st_mode & stat.S_ISVTX)

    def lets_write(self, bits: int) -> bool:
        """Whether its mode has one of these bits, on a file system that can be written to. A link's mode is void."""
        mode = self.status.st_mode
        return bool(not stat.S_ISLNK(mode) and mode & bits) and not os.statvfs(self.path).f_flag & os.ST_RDONLY


def steps(path: Path) -> Iterator[Step]:
    """All that lies on the way from / to a path, as far as there is something. Raises OSError."""
    rest = list(reversed((path if path.is_absolute() else Path.cwd() / path).parts[1:]))
    here, links = Step("/", os.lstat("/"), mounted=True), 0
    yield here
    while rest:
        name = rest.pop()
        if name == "..":
            here = _step(os.path.dirname(here.path), here)  # noqa: PTH120 - has been asked on the way down
            continue
        try:
            there = _step(f"{here.path.rstrip('/')}/{name}", here)
        except (FileNotFoundError, NotADirectoryError):
            return
        yield there
        if not stat.S_ISLNK(there.status.st_mode):
            here = there
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        target = Path(os.readlink(there.path))  # noqa: PTH115 - a text
        if target.is_absolute():
            here = Step("/", os.lstat("/"), mounted=True)
        rest.extend(reversed(target.parts[target.is_absolute() :]))


def _step(path: str, parent: Step) -> Step:
    status = os.lstat(path)
    return Step(path, status, path == "/" or (stat.S_ISDIR(status.st_mode) and status.st_dev != parent.status.st_dev))
