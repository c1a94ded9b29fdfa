"""Runs a command above copies of the user's folders: `python overlay.py ORDER CMD...`, of the standard library alone.

The command gets a mount namespace of its own, in which an overlay lies above every folder that could be written to. It
finds all files where they are. What it writes, renames or removes goes to a folder of gputune's, and is seen by its own
processes alone. A folder that no overlay can lie above is read-only. A file that is mounted by itself, as a container's
may be, is copied if it is small, and else read-only. What is mounted at or below /dev, /proc and /sys
stays as it is, as does /run, and so do the folders that ORDER names.

ORDER is a file with an `Order` as JSON.
"""

import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

FAILED = 125
"""The exit code where the folders cannot be covered; the reason is a line on stderr."""
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_KEPT_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME | os.ST_RELATIME
"""The flags that a mount must keep when it is made read-only. statvfs and mount(2) use the same numbers for all of them
but ST_RELATIME."""
_MS_RELATIME = 1 << 21
COPIED_BYTES = 1 << 26
"""The most of a file that is copied at each start, in some 0.1 s."""


class Order(NamedTuple):  # a dataclass would take 10 ms to import
    folder: str
    """Takes what is written. It must be within `unchanged`, and may be below a folder that is covered."""
    memory_bytes: int
    """The most that is written to memory instead, where no overlay can write to the file system of `folder`."""
    unchanged: Sequence[str]
    """Folders that stay as they are: what is written there is written."""
    needed: Sequence[str]
    """Folders in which the command must be able to write."""
    steps_of_root: "Sequence[Step]"
    steps_of_user: "Sequence[Step]"
    """The steps in a mount namespace that root makes, and those in one that any user may make, in a user namespace."""
    mark: str
    """A file that gets the name of the namespace: a process whose namespace it is runs above the copies."""
    is_trial: bool = False
    """Whether the command is not started, and the exit code alone tells whether it could be."""


class Step(NamedTuple):
    kind: Literal["overlay", "bind", "read-only", "copy"]
    """`overlay` puts a copy-on-write layer above a folder; `bind` mounts a folder again that such a layer would hide;
    `read-only` forbids writes to a mount; `copy` puts a copy in the place of a single file."""
    point: str


def is_below(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, at any depth, and is not the folder itself."""
    return path != folder and path.startswith(folder if folder == "/" else f"{folder}/")


def is_within(path: str, folder: str) -> bool:
    return path == folder or is_below(path, folder)


def cover(order: Order) -> None:
    """Put this process into a namespace in which no folder of the user's is written to. Raises OSError."""
    here = os.getcwd()
    of_others = [path for path in order.needed if _is_of_another_group(path)]
    is_root = _enter()
    if of_others and not is_root:
        raise OSError(f"{of_others[0]} is of another group than your own")
    steps = [Step(*step) for step in (order.steps_of_root if is_root else order.steps_of_user)]
    covered = [step.point for step in steps if step.kind == "overlay"]
    if bare := [path for path in order.needed if not any(is_within(path, folder) for folder in covered)]:
        raise OSError(f"there can be no copy of {bare[0]}")
    _mount_all(order, steps, _sockets(covered))
    os.chdir(here)
    for path in order.needed:
        _try(path)
    with open(order.mark, "w", encoding="utf-8") as file:
        file.write(os.readlink("/proc/self/ns/mnt"))


def _is_of_another_group(folder: str) -> bool:
    """Whether it is this user's, and no file in it could be copied in a namespace of users, which knows one group."""
    status = os.stat(folder)
    return status.st_uid == os.geteuid() and status.st_gid != os.getegid()


def _mount_all(order: Order, steps: Sequence[Step], sockets: Sequence[str]) -> None:
    """Do what was planned, and mount again what then is below an overlay."""
    again = {step.point for step in steps if step.kind == "bind"}
    below = {path: _opened(path) for path in {*order.unchanged, *(step.point for step in steps)} - again}
    for path in (*again, *sockets):
        with suppress(OSError):  # a socket's program may remove it meanwhile, and what root may not see stays hidden
            below[path] = _opened(path)
    uppers = _Uppers(order)
    for number, step in enumerate(steps):
        if step.point != "/" and step.point in below:
            _take(step, f"/proc/self/fd/{below[step.point]}", uppers, str(number))
    for path in order.unchanged:
        mount(f"/proc/self/fd/{below[path]}", path, _MS_BIND | _MS_REC)
    for path in below.keys() & set(sockets):
        with suppress(OSError):
            mount(f"/proc/self/fd/{below[path]}", path, _MS_BIND)
    if Step("read-only", "/") in steps:
        _make_read_only("/")
    for descriptor in [*below.values(), *uppers.descriptors, uppers.folder]:
        os.close(descriptor)


def _take(step: Step, source: str, uppers: "_Uppers", name: str) -> None:
    kind, point = step
    if kind == "bind":
        mount(source, point, _MS_BIND)
    elif kind == "read-only" or not (uppers.copy if kind == "copy" else uppers.overlay)(source, point, name):
        mount(source, point, _MS_BIND | _MS_REC)
        _make_read_only(point)


def _opened(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _enter() -> bool:
    """Enter a mount namespace: root's, or else one of this user's own. Whether it is root's."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        _unshare(_CLONE_NEWNS)
        is_root = True
    except PermissionError:
        try:
            _unshare(_CLONE_NEWUSER | _CLONE_NEWNS)
        except OSError:  # whose number says little: also "No space left on device"
            raise OSError("it permits no namespace to this user") from None
        is_root = False
        for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{file}", "w", encoding="utf-8") as opened:
                opened.write(text)
    mount("none", "/", _MS_REC | _MS_PRIVATE)
    return is_root


def _sockets(folders: Sequence[str]) -> list[str]:
    """The sockets of running programs below these folders: nobody could connect to one below an overlay."""
    with suppress(OSError), open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
        found = {line.rstrip("\n").split(" ", 7)[-1] for line in file if "/" in line}
        return [path for path in sorted(found) if any(is_below(path, one) for one in folders) and _is_socket(path)]
    return []


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False


class _Uppers:
    """The folders that overlays write to: those of an order, and last one in memory."""

    def __init__(self, order: Order) -> None:
        with open("/proc/self/uid_map", encoding="utf-8") as file:
            self._is_owner = file.read().split() == ["0", "0", str(2**32 - 1)]
        """Whether this namespace owns the machine's file systems, so that overlays may keep trusted attributes."""
        self._memory, self._bytes, self._has_memory = f"{order.folder}/memory", order.memory_bytes, False
        self.descriptors: list[int] = []
        os.mkdir(order.folder, 0o700)
        self.folder = os.open(order.folder, os.O_PATH | os.O_CLOEXEC)
        with suppress(OSError):
            self._open(f"{order.folder}/disk")

    def _open(self, folder: str) -> None:
        os.mkdir(folder, 0o700)
        os.setxattr(folder, "trusted.overlay.gputune" if self._is_owner else "user.overlay.gputune", b"")
        self.descriptors.append(os.open(folder, os.O_PATH | os.O_CLOEXEC))

    def overlay(self, lower: str, point: str, name: str) -> bool:
        """Lay an overlay above a folder; whether that could be done."""
        if any(_is_done(self._overlay, f"/proc/self/fd/{one}/{name}", lower, point) for one in self.descriptors):
            return True
        if self._has_memory:
            return False
        self._has_memory = True
        os.mkdir(self._memory, 0o700)
        mount("tmpfs", self._memory, 0, "tmpfs", f"mode=700,size={self._bytes}")
        with suppress(OSError):
            self._open(f"{self._memory}/uppers")
            return _is_done(self._overlay, f"/proc/self/fd/{self.descriptors[-1]}/{name}", lower, point)
        return False

    def copy(self, file: str, point: str, name: str) -> bool:
        """Mount a copy of a file over it; whether that could be done."""
        return os.stat(file).st_size <= COPIED_BYTES and _is_done(
            self._copy, f"/proc/self/fd/{self.folder}/{name}", file, point
        )

    def _copy(self, own: str, file: str, point: str) -> None:
        import shutil

        shutil.copyfile(file, own)
        shutil.copystat(file, own)
        if self._is_owner:
            status = os.stat(file)
            os.chown(own, status.st_uid, status.st_gid)
        mount(own, point, _MS_BIND)

    def _overlay(self, own: str, lower: str, point: str) -> None:
        upper, work = f"{own}/upper", f"{own}/work"
        for folder in (own, upper, work):
            os.mkdir(folder, 0o700)
        status = os.stat(lower)
        mode = stat.S_IMODE(status.st_mode)
        if self._is_owner:
            os.chown(upper, status.st_uid, status.st_gid)
        elif status.st_uid != os.geteuid():  # which it becomes here, and may do what it always may
            able = (os.R_OK, stat.S_IRUSR), (os.W_OK, stat.S_IWUSR), (os.X_OK, stat.S_IXUSR)
            mode = mode & ~stat.S_IRWXU | sum(bit for asked, bit in able if os.access(lower, asked))
        os.chmod(upper, mode)
        os.utime(upper, ns=(status.st_atime_ns, status.st_mtime_ns))
        kind = "redirect_dir=on" if self._is_owner else "userxattr"
        data = f"lowerdir={lower},upperdir={upper},workdir={work},index=off,metacopy=off,volatile,{kind}"
        mount("overlay", point, 0, "overlay", data)


def _is_done(action: Callable[..., None], *inputs: str) -> bool:
    try:
        action(*inputs)
    except OSError:
        return False
    return True


def _make_read_only(folder: str) -> None:
    flags = os.statvfs(folder).f_flag
    kept = flags & _KEPT_FLAGS & ~os.ST_RELATIME | (_MS_RELATIME if flags & os.ST_RELATIME else 0)
    mount("none", folder, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept)


def _try(folder: str) -> None:
    """Raises OSError where the folder, which the user can write to, has become one where nothing can be written."""
    path = f"{folder}/.gputune-{os.getpid()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)


def mount(source: str, point: str, flags: int, kind: str = "none", data: str = "") -> None:
    """Mount as the system call of this name does. Raises OSError."""
    import ctypes

    words = (os.fsencode(source), os.fsencode(point), kind.encode(), ctypes.c_ulong(flags), os.fsencode(data))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(*words):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), point)


def _unshare(flags: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def main(file: str, words: Sequence[str]) -> int:
    """Become the command, above copies of the user's folders; return an exit code where that cannot be."""
    with open(file, encoding="utf-8", errors="surrogateescape") as opened:
        order = Order(**json.load(opened))
    try:
        cover(order)
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return FAILED
    if order.is_trial:
        return 0
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python itself ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(words[0], list(words))
    except OSError as error:
        _say(f"gputune: {words[0]}: {error.strerror}")
        return 127 if isinstance(error, FileNotFoundError) else 126


def _say(line: str) -> None:
    print("".join(char if char.isprintable() else repr(char)[1:-1] for char in line), file=sys.stderr, flush=True)


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
