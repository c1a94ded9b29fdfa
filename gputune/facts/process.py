"""This process: its user, its limits, and the folders in which torch and its compilers keep things."""

from __future__ import annotations

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
"""Variable to what stands in for it where it is not set; those before it may be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    variable: str
    """Which variable moves it."""
    path: str
    writable: bool
    """It, or where it does not exist yet the nearest folder above it that does."""
    free_bytes: int | None = None
    """What its file system has left for this user; None where it does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    uid: int | None = None
    user: str | None = None
    """The user's name; None where the id has none (`docker run --user 1234`)."""
    user_variable: str | None = None
    """What Python takes for the user's name before it asks the system: LOGNAME, USER, LNAME or USERNAME, if one is set."""
    open_files: int | None = None
    """Most open files (soft limit); None for no limit, or where a gap says why."""
    locked_bytes: int | None = None
    """Most locked memory (soft limit); None likewise, and for a process that may lock all it likes (CAP_IPC_LOCK)."""
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
    try:
        capabilities = re.search(r"^CapEff:\s+([0-9a-f]{1,16})$", host.read("/proc/self/status"), re.MULTILINE)
    except Unreadable:
        capabilities = None
    if capabilities and int(capabilities[1], 16) >> _CAP_IPC_LOCK & 1:
        return None
    return _limit(host, "Max locked memory")


def _folders(host: Host, home: str | None) -> tuple[Folder, ...]:
    """Without HOME, programs take the user's home of /etc/passwd, where there is one."""
    known: dict[str, str] = {}
    for variable, otherwise in _FOLDERS.items():
        above = {
            name: path.rstrip("/") for name, path in known.items()
        }  # HOME=/ is what a container gives a user without a name
        known[variable] = host.environ.get(variable) or otherwise.format_map({"PASSWD": home or "", **above})
    return tuple(
        Folder(
            variable=variable,
            path=path,
            writable=bool(path) and _writable(host, variable, path),
            free_bytes=_free(host, host.nearest(path)) if path else None,
        )
        for variable, path in known.items()
    )


def _writable(host: Host, variable: str, path: str) -> bool:
    if variable == "TMPDIR":  # nobody makes it
        return host.exists(path) and host.writable(path)
    return host.writable(host.nearest(path))


def _free(host: Host, folder: str) -> int | None:
    try:
        return host.space_bytes(folder)[1]
    except Unreadable:
        return None
