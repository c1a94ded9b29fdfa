"""Whether somebody else could have written a file, or could exchange it.

Whoever may write to a folder may exchange what is in it, so the whole way to a file is asked, from / on, and each
symbolic link. Two kinds of folders are as safe as they are meant to be, if they are not the file's own: a sticky one
such as /tmp, and the top of a mounted file system, whose owner and mode are the choice of whoever mounted it (a
Kubernetes emptyDir is everybody's, and what is mounted into a container of root's may be any user's). What lies below
must be this user's or root's all the same, so that others can remove it there and put nothing in its place.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")
UID_MAP = Path("/proc/self/uid_map")
ALL_USERS = ["0", "0", "4294967295"]
"""The map of a user namespace in which every user has a number, as in the first one."""
MOST_LINKS = 40
"""As many symbolic links the kernel follows on one way."""


class Step(NamedTuple):
    """A folder or a link on the way to a file, or the file. (A dataclass would delay every start by another 1 ms.)"""

    path: str
    """Without a link in it, but for itself."""
    status: os.stat_result
    is_mounted: bool
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


def fault(path: Path, *, above: bool = False) -> str | None:
    """Why a file, or a folder for such files, may be of others than this user and root, in words; None where it is not.

    A path of which a part does not exist is asked as far as it does. With `above` the path is not the file's own folder
    but one above it.
    """
    try:
        way = list(_steps(path))
        strict = set()
        if not above and os.path.lexists(path):  # a folder, or a file and its folder, are asked most strictly
            strict = {way[-1].path, way[-1].path if way[-1].is_folder else os.path.dirname(way[-1].path)}  # noqa: PTH120
        return _fault(way, strict)
    except OSError as error:
        return f"{error.filename or path} cannot be looked at: {error.strerror}"


def exchangeable(path: Path) -> str | None:
    """The folder on the way to a file in which everybody can put another in its place; None where there is none."""
    try:
        ways = [step for step in _steps(path) if step.is_folder and not step.is_mounted and not step.is_sticky]
        return next((step.path for step in ways if step.lets_write(stat.S_IWOTH)), None)
    except OSError:
        return None


def _fault(way: list[Step], strict: set[str]) -> str | None:
    owners, hidden = {0, os.geteuid()}, _hidden_root()
    for step in way:
        is_strict = step.path in strict
        may_differ = step.is_mounted and not is_strict
        if step.status.st_uid not in owners | hidden and not may_differ:
            return f"{step.path} belongs to user {step.status.st_uid}"
        # No folder can be made below what is none, such as /dev/null.
        is_harmless = may_differ or (not is_strict and (step.is_sticky or not step.is_folder))
        if not is_harmless and _others_write(step, is_strict):
            return f"{step.path} can be written by others (chmod go-w)"
        if step.lets_write(stat.S_IWOTH):
            hidden = set()
    return None


def _others_write(step: Step, is_strict: bool) -> bool:
    """Whether anybody may write, or a group that is not private to this user. Root's group, which in images for any
    user all have, may write to a folder above.
    """
    if not step.lets_write(stat.S_IWGRP | stat.S_IWOTH):
        return False
    is_roots = not step.status.st_gid
    return bool(step.status.st_mode & stat.S_IWOTH) or (is_strict and is_roots) or not _is_private(step)


def _is_private(step: Step) -> bool:
    """Whether its group is that of root or of this user alone: of the same number or name, as distributions make them,
    with nobody else in it. There a home folder that its group may write to is usual. An access control list shows in
    the bits of the group and may name anybody.
    """
    import grp
    import pwd

    try:
        os.getxattr(step.path, "system.posix_acl_access")
    except OSError:
        pass
    else:
        return False
    gid, uid = step.status.st_gid, os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        name = None
    try:
        group = grp.getgrgid(gid)
    except (KeyError, OSError):
        return gid in (0, uid)
    is_own = gid in (0, uid) or group.gr_name == name
    return is_own and all(member in (group.gr_name, name) for member in group.gr_mem)


def _hidden_root() -> set[int]:
    """The number under which root's files are seen in a user namespace without root, as in Apptainer; none elsewhere.

    Strangers' are seen under it too. So it is trusted as far as nobody else can have made what it owns: not below a
    folder that everybody may write to.
    """
    try:
        if UID_MAP.read_text(encoding="utf-8").split() == ALL_USERS:
            return set()
        return {int(OVERFLOW_UID.read_text(encoding="utf-8"))}
    except (OSError, ValueError):
        return set()


def _steps(path: Path) -> Iterator[Step]:
    """The folders and links from / to a path, in the order in which the kernel follows them, up to the first that does
    not exist. Raises OSError.
    """
    rest = list(reversed((path if path.is_absolute() else Path.cwd() / path).parts[1:]))
    here, links = _step("/", 0), 0
    yield here
    while rest:
        name = rest.pop()
        if name == "..":
            here = _step(os.path.dirname(here.path), here.status.st_dev)  # noqa: PTH120 - has been asked on the way down
            continue
        try:
            there = _step(f"{here.path.rstrip('/')}/{name}", here.status.st_dev)
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
            here = _step("/", 0)
        rest.extend(reversed(target.parts[target.is_absolute() :]))


def _step(path: str, device: int) -> Step:
    """`device` is that of the folder above."""
    status = os.lstat(path)
    return Step(path, status, path == "/" or (stat.S_ISDIR(status.st_mode) and status.st_dev != device))
