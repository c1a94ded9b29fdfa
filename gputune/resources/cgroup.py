"""Control-group limits on this process, from its own group up to the mount, for v1, v2 and hybrid hierarchies.

Any level may set a limit, so callers take the tightest. A `0::` line in /proc/self/cgroup does not imply v2, since
hybrid hosts list it beside v1 controllers; the files that exist decide.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from .files import Files
from .unreadable import Unreadable

_UNIFIED = ""
_LONGEST_PATH = 4096
"""Linux, limits.h, PATH_MAX: a longer path names no folder."""


def values(files: Files, controller: str, v1_file: str, v2_file: str) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the limit's file at each level that has one, in both hierarchies.
    Raises `Unreadable` if neither offers the controller or the process's own group is not visible.
    """
    offered = False
    visible: list[str] = []
    for name, file in ((controller, v1_file), (_UNIFIED, v2_file)):
        for folder, own in _levels(files, name):
            path = f"{folder}/{file}"
            text = _text(files, path)
            offers = text is not None if name != _UNIFIED else not own and _lists(files, folder, controller)
            if offers and not own:
                raise Unreadable(f"{folder or '/'} shows a parent of this process's cgroup, which is not visible here")
            offered = offered or offers
            visible += [folder] if name == _UNIFIED else []
            if text is not None:
                yield path, text
    if not (offered or any(_lists(files, folder, controller) for folder in reversed(visible))):
        raise Unreadable(f"no cgroup hierarchy with the {controller} controller is visible")


def _text(files: Files, path: str) -> str | None:
    """The text of a file; None if there is none. Raises `Unreadable` if there is one."""
    try:
        return files.read(path)
    except Unreadable as error:
        if error.cause == "no_such_file" or not files.exists(path):
            return None
        raise


def _lists(files: Files, folder: str, controller: str) -> bool:
    try:
        return controller in files.read(f"{folder}/cgroup.controllers").split()
    except Unreadable:
        return False


def _levels(files: Files, name: str) -> Iterator[tuple[str, bool]]:
    """The folders of the process's group and its ancestors, innermost first, and whether it is visible.
    It is not after `unshare -C`: the group is then called `/`, and the older mount's root reads `/..`.
    """
    group = _groups(files).get(name, "/")
    for mount, root in _mounts(files, name):
        own = not root.startswith("/..") or group.startswith(root)
        below = _below(files, mount, group.removeprefix(root) if root != "/" else group)
        while below:
            yield mount + below, own
            below = below.rpartition("/")[0]
        yield mount, own


def _below(files: Files, mount: str, inside: str) -> str:
    """The longest tail of a group's path that exists below the mount, as `/a/b`; empty if none does.
    Paths may be deep: a tail's first folder is asked for before the whole of it, and each name only once.
    """
    if len(inside) > _LONGEST_PATH:
        inside = inside[-_LONGEST_PATH:].partition("/")[2]
    parts = [part for part in inside.split("/") if part not in ("", ".")]
    if ".." in parts:
        parts = parts[len(parts) - parts[::-1].index("..") :]
    here = {part for part in set(parts) if files.exists(f"{mount}/{part}")}
    tail = "".join(f"/{part}" for part in parts)
    for part in parts:
        if part in here and files.exists(mount + tail):
            return tail
        tail = tail[len(part) + 1 :]
    return ""


def _groups(files: Files) -> dict[str, str]:
    """Controller (the empty string for v2) to this process's group."""
    groups: dict[str, str] = {}
    for line in files.read("/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        groups.update((controller, path) for controller in controllers.split(",") if colon)
    return groups


def _mounts(files: Files, name: str) -> list[tuple[str, str]]:
    """The mount points of a hierarchy, each with the group that it shows as its root; `/` is the empty text."""
    try:
        text = files.read("/proc/self/mountinfo")
    except Unreadable:
        return [(f"/sys/fs/cgroup/{name}".rstrip("/"), "/")]
    mounts = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" if name == _UNIFIED else kind[0] == "cgroup" and name in kind[2].split(","):
            mounts.append((str(PurePosixPath(fields[4])).rstrip("/"), fields[3]))
    return mounts
