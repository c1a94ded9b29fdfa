"""Whether somebody else could have written a file, or could exchange it.

Whoever may write to a folder may exchange what is in it, so the whole way to a file is asked, from / on. Two kinds of
folders are as safe as they are meant to be, if they are not the file's own: a sticky one such as /tmp, and the top of a
mounted file system, whose owner and mode are the choice of whoever mounted it (a Kubernetes emptyDir is everybody's,
and what is mounted into a container of root's may be any user's). What lies below must be this user's or root's all the
same, so that others can remove it there and put nothing in its place.
"""

import os
import stat
from pathlib import Path

from gputune.host.way import Step, steps

OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")
UID_MAP = Path("/proc/self/uid_map")
ALL_USERS = ["0", "0", "4294967295"]
"""The map of a user namespace in which every user has a number, as in the first one."""


def fault(path: Path, *, above: bool = False) -> str | None:
    """Why a file, or a folder for such files, may be of others than this user and root, in words; None where it is not.

    A path of which a part does not exist is asked as far as it does. With `above` the path is not the file's own folder
    but one above it.
    """
    try:
        way = list(steps(path))
        return _fault(way, set() if above or not os.path.lexists(path) else _strict(way[-1]))
    except OSError as error:
        return f"{error.filename or path} cannot be looked at: {error.strerror}"


def exchangeable(path: Path) -> str | None:
    """The folder on the way to a file in which everybody can put another in its place; None where there is none."""
    try:
        return next((step.path for step in steps(path) if step.is_folder and _is_everybodys(step)), None)
    except OSError:
        return None


def _strict(last: Step) -> set[str]:
    """The paths that are asked most strictly: a folder, or a file and its folder."""
    return {last.path} if last.is_folder else {last.path, os.path.dirname(last.path)}  # noqa: PTH120


def _fault(way: list[Step], strict: set[str]) -> str | None:
    owners, hidden = {0, os.geteuid()}, _hidden_root()
    for step in way:
        mounted = step.mounted and step.path not in strict
        if step.status.st_uid not in owners | hidden and not mounted:
            return f"{step.path} belongs to user {step.status.st_uid}"
        # No folder can be made below what is none, such as /dev/null.
        harmless = mounted or (step.path not in strict and (step.is_sticky or not step.is_folder))
        if not harmless and _others_write(step, strictly=step.path in strict):
            return f"{step.path} can be written by others (chmod go-w)"
        if step.lets_write(stat.S_IWOTH):
            hidden = set()
    return None


def _is_everybodys(step: Step) -> bool:
    return not step.mounted and not step.is_sticky and step.lets_write(stat.S_IWOTH)


def _others_write(step: Step, *, strictly: bool) -> bool:
    if not step.lets_write(stat.S_IWGRP | stat.S_IWOTH):
        return False
    return bool(step.status.st_mode & stat.S_IWOTH) or not _is_private(step) or (strictly and not step.status.st_gid)


def _is_private(step: Step) -> bool:
    """Whether its group is that of root or of this user alone: of the same number or name, as distributions make them,
    with nobody else in it. There a home folder that its group may write to is usual, and in images for any user all
    have the group of root. An access control list shows in the bits of the group and may name anybody.
    """
    if _has_list(step.path):
        return False
    import grp
    import pwd

    gid = step.status.st_gid
    try:
        group = grp.getgrgid(gid)
    except (KeyError, OSError):
        return gid in (0, os.geteuid())
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except (KeyError, OSError):
        name = None
    own = gid in (0, os.geteuid()) or group.gr_name == name
    return own and all(member in (group.gr_name, name) for member in group.gr_mem)


def _has_list(path: str) -> bool:
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError:
        return False
    return True


def _hidden_root() -> set[int]:
    """The number under which root's files are seen in a user namespace without root, as in Apptainer; none elsewhere.

    Strangers' are seen under it too. So it is trusted as far as nobody else can have made what it owns: not below a
    folder that everybody may write to.
    """
    try:
        return (
            set()
            if UID_MAP.read_text(encoding="utf-8").split() == ALL_USERS
            else {int(OVERFLOW_UID.read_text(encoding="utf-8"))}
        )
    except (OSError, ValueError):
        return set()
