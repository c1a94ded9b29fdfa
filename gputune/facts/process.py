"""This process: its user, its limits, and the folders in which torch and its compilers keep files."""

import re
from dataclasses import dataclass

from gputune.facts.gap import Gaps
from gputune.host import Host, Unreadable

_UNLIMITED = "unlimited"
_CAP_IPC_LOCK = 14
_FOLDERS = {
    "HOME": "{PASSWD}",
    "XDG_CACHE_HOME": "{HOME}/.cache",
    "TORCH_HOME": "{XDG_CACHE_HOME}/torch",
    "HF_HOME": "{XDG_CACHE_HOME}/huggingface",
    "TMPDIR": "/tmp",
}
"""Each variable's default, in terms of the variables before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    variable: str
    path: str
    writable: bool
    """The folder, or the nearest existing one above it, can be written to."""
    free_bytes: int | None = None
    """The bytes that the file system has left for this user; None if it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    uid: int | None = None
    user: str | None = None
    """The user's name; None for an id without one (`docker run --user 1234`)."""
    user_variable: str | None = None
    """The first of LOGNAME, USER, LNAME and USERNAME that is set, which Python takes for the user's name."""
    open_files: int | None = None
    """The soft limit of open files; None without a limit, or where a gap says why."""
    locked_bytes: int | None = None
    """The soft limit of locked memory; None without a limit, with CAP_IPC_LOCK, or where a gap says why."""
    folders: tuple[Folder, ...] = ()


def read(host: Host, gaps: Gaps) -> Process:
    uid, user, home = gaps.read("process.user", host.user) or (None, None, None)
    named = (host.environ.get(name) for name in ("LOGNAME", "USER", "LNAME", "USERNAME"))
    return Process(
        uid=uid,
        user=user,
        user_variable=next(filter(None, named), None),
        open_files=gaps.read("process.open_files", lambda: _limit(host, "Max open files")),
        locked_bytes=gaps.read("process.locked_bytes", lambda: _locked(host)),
        folders=gaps.read("process.folders", lambda: _folders(host, home)) or (),
    )


def _limit(host: Host, name: str) -> int | None:
    found = re.search(rf"^{name}\s+(\d{{1,20}}|{_UNLIMITED})\s", host.read("/proc/self/limits"), re.MULTILINE)
    if not found:
        raise Unreadable(f"/proc/self/limits has no {name!r}")
    return None if found[1] == _UNLIMITED else int(found[1])


def _locked(host: Host) -> int | None:
    status = host.read_or_empty("/proc/self/status")
    capabilities = re.search(r"^CapEff:\s+([0-9a-f]{1,16})$", status, re.MULTILINE)
    if capabilities and int(capabilities[1], 16) >> _CAP_IPC_LOCK & 1:
        return None
    return _limit(host, "Max locked memory")


def _folders(host: Host, home: str | None) -> tuple[Folder, ...]:
    """The folders and their state. Without HOME, programs use the home folder in /etc/passwd, if there is one."""
    paths: dict[str, str] = {}
    for variable, default in _FOLDERS.items():
        above = {name: path.rstrip("/") for name, path in paths.items()}  # HOME may be /, for a user without a name
        paths[variable] = host.environ.get(variable) or default.format_map({"PASSWD": home or "", **above})
    return tuple(
        Folder(
            variable=variable,
            path=path,
            writable=bool(path) and _writable(host, variable, path),
            free_bytes=_free(host, host.nearest(path)) if path else None,
        )
        for variable, path in paths.items()
    )


def _writable(host: Host, variable: str, path: str) -> bool:
    if variable == "TMPDIR":  # programs create the other folders, but not this one
        return host.exists(path) and host.writable(path)
    return host.writable(host.nearest(path))


def _free(host: Host, folder: str) -> int | None:
    try:
        return host.space_bytes(folder)[1]
    except Unreadable:
        return None
