"""The process that owns a command, everything that this starts, and a folder: `python keeper.py LIFELINE HANDED FOLDER
[-- CMD]`, of the standard library alone.

When CMD has ended, or something comes through the pipe LIFELINE, or nobody holds its other end any more, nothing of it
is left: the kernel hands this process what CMD's processes leave behind, and it kills that and removes FOLDER. So not
even SIGKILL to gputune leaves anything, however deep a process of CMD hangs in a library.

HANDED are the descriptors that only CMD may hold, with commas between them; an error of the start is written to the
last one, as JSON. FOLDER is made, where that is possible, and named to CMD in the variable GPUTUNE_TEMPORARY. Without
CMD it is kept as long as LIFELINE.
"""

import errno
import os
import re
import select
import signal
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

VARIABLE = "GPUTUNE_TEMPORARY"
"""The environment variable that names FOLDER to the command; it is not there where the folder could not be made."""
COMPILED = "TORCHINDUCTOR_CACHE_DIR"
NOT_STARTED = "not_started"
"""The key, in the object that is written then, of the number of the error for which the command did not start."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
TRACKERS = (b"multiprocessing.resource_tracker", b"torch_shm_manager")
"""Parts of the command lines of processes that, once their last client is gone, unlink in /dev/shm what it left."""
TRACKER_SECONDS = 3.0
"""How long to wait for a tracker to end, about 0.05 s after its last client. One still in use is not waited for."""
SHARED = re.compile(rb"/dev/shm/(sem\.|torch_)")
"""How the paths of named semaphores and of torch's shared tensors begin. A process that is killed while it creates one
leaves it, since it tells the tracker, or unlinks the name, only afterwards."""
FORGOTTEN, BEING_CREATED = re.compile(r"torch_|sem\.mp-"), re.compile(r"sem\.[A-Za-z0-9]{6}")
"""The names of those that no program meant to stay. glibc gives a semaphore six letters until it has been written."""
CREATING_SECONDS = 10.0
"""The most since such a semaphore was created: an older one may be a program's own, and meant to stay."""
REMOVING_SECONDS = 3.0
"""How long to try to remove a folder in which a process of another owner, about to end, may still write."""
_PR_SET_CHILD_SUBREAPER = 36
_MS_REC, _MS_PRIVATE, _MNT_DETACH, _UMOUNT_NOFOLLOW = 16384, 1 << 18, 2, 8
_POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that come to all processes of a job at once. What ends a keeper is the lifeline."""


def main(lifeline: int, handed: Sequence[int], folder: str, command: Sequence[str]) -> int:
    """Run the command until its end or the lifeline's; return its exit code as a shell would."""
    import ctypes  # not where only this module's functions are wanted: it takes 3 ms

    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.set_inheritable(lifeline, False)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    woken = _woken_by_children()
    ours = [number for number in _POLITE if signal.signal(number, signal.SIG_IGN) is not signal.SIG_IGN]
    made = make(folder)
    environ = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if made:
        environ[VARIABLE] = folder
    child = 0
    try:
        if command:
            # Python itself ignores the last two.
            signals = [*ours, signal.SIGPIPE, signal.SIGXFSZ]
            child = os.posix_spawnp(command[0], list(command), environ, setsigdef=signals, setsigmask=mask)
    except OSError as error:
        code = _not_started(command[0], error, handed)
    else:
        for descriptor in handed:
            os.close(descriptor)
        code = _code_of(child, lifeline, woken)
        end_descendants()
    if made:
        remove(folder)
    return code


def _woken_by_children() -> int:
    """A descriptor that turns readable each time that a child has ended."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def make(folder: str) -> bool:
    """Create a folder for this user alone, unless the other end of LIFELINE or a stranger did; whether it is there."""
    with suppress(OSError):  # also where no folder is named
        os.mkdir(folder, 0o700)
    return _is_own(folder)


def _is_own(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _not_started(name: str, error: OSError, handed: Sequence[int]) -> int:
    import json

    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)
    print(f"gputune: {shown}: {error.strerror}", file=sys.stderr, flush=True)
    if handed:
        os.write(handed[-1], json.dumps({NOT_STARTED: error.errno}).encode() + b"\n")
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def _code_of(child: int, lifeline: int, woken: int) -> int:
    """Wait until the child has ended, or the lifeline has. As subreaper this process has other children too."""
    waiting = select.poll()
    waiting.register(lifeline, select.POLLIN)
    waiting.register(woken, select.POLLIN)
    while True:
        with suppress(BlockingIOError):
            os.read(woken, 4096)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    code = os.waitstatus_to_exitcode(ended[1])
                    return code if code >= 0 else 128 - code
        if any(descriptor == lifeline for descriptor, _ in waiting.poll()):
            if child and not _descendants():  # /proc cannot be read: that is all that is known of
                os.kill(child, signal.SIGKILL)
            return 128 + signal.SIGKILL


def end_descendants() -> None:
    """Kill all descendants of this process, also those that they start meanwhile, and wait until they are gone: a
    process whose main thread has ended may be a zombie by its state and still hold a GPU's memory. Trackers come last.
    """
    patience, pause = time.monotonic() + TRACKER_SECONDS, 0.001
    shared: set[int] = set()
    while _has_children():
        is_late, left = time.monotonic() > patience, _descendants()
        if is_late and not left:  # /proc cannot be read
            break
        ours = {os.getpid(), *left}
        for pid in left:
            with suppress(OSError):  # it may end meanwhile, and another process get its number
                state, parent, *_ = _stat(pid)
                if int(parent) in ours and (is_late or not _is_tracker(pid, state)):
                    shared |= _killed(pid)
        time.sleep(pause)
        pause = min(2 * pause, 0.1 if is_late else 0.005)
    _unlink(shared)


def _is_tracker(pid: int, state: bytes) -> bool:
    """Whether it is a tracker, or may become one: in the middle of exec there is no command line for a moment."""
    line = _read(pid, "cmdline")
    return any(name in line for name in TRACKERS) or (not line and state != b"Z")


def _killed(pid: int) -> set[int]:
    """Kill a process; return the inodes of its semaphores and tensors, whose names may change until it has stopped.
    A library that it was linking, in torch's cache of compiled code, would be taken for a whole one.
    """
    try:
        os.kill(pid, signal.SIGSTOP)
        found = {int(line.split()[4]) for line in _read(pid, "maps").splitlines() if SHARED.search(line)}
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                path = os.readlink(f"/proc/{pid}/fd/{name}")
                if SHARED.match(os.fsencode(path)):
                    found.add(os.stat(f"/proc/{pid}/fd/{name}").st_ino)
                is_compiled = path.endswith(".so") and path.startswith(os.environ.get(COMPILED, "\0"))
                if is_compiled and int(_read(pid, f"fdinfo/{name}").split()[3], 8) & os.O_ACCMODE:
                    os.unlink(f"/proc/{pid}/root{path}")
        return found
    finally:
        os.kill(pid, signal.SIGKILL)


def _unlink(shared: set[int]) -> None:
    with suppress(OSError):
        for entry in os.scandir("/dev/shm") if shared else ():
            with suppress(OSError):  # another process may remove it first
                is_new = time.time() - entry.stat().st_ctime < CREATING_SECONDS
                is_forgotten = FORGOTTEN.match(entry.name) or (is_new and BEING_CREATED.fullmatch(entry.name))
                if is_forgotten and entry.inode() in shared:
                    os.unlink(entry)


def _has_children() -> bool:
    """Whether there are any, once those that have ended are gone."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _descendants() -> list[int]:
    """The ids of all processes below this one that have not been waited for; none where /proc cannot be read."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            with suppress(OSError, ValueError):
                children.setdefault(int(_stat(int(name))[1]), []).append(int(name))
    found = list(children.get(os.getpid(), ()))
    for pid in found:  # which grows
        found += children.get(pid, ())
    return found


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name: state, parent, and so on."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


def remove(folder: str) -> None:
    """Remove a folder of this user's with all that is in it, as far as possible; read-only folders too. What another
    process has mounted in it is unmounted and never entered; where that fails it stays, with the folders above it.
    """
    patience = time.monotonic() + REMOVING_SECONDS
    while _is_own(folder):
        with suppress(OSError):
            _remove_all(folder)
        if not _is_own(folder) or time.monotonic() > patience:
            break
        time.sleep(0.01)


def _remove_all(folder: str) -> None:
    """Folders may lie deeper than calls, descriptors or a path can: of those above only their names are remembered."""
    parent, name = os.path.split(folder)
    device, here = os.lstat(folder).st_dev, os.open(parent, os.O_PATH)
    todo, above = [name], list[tuple[int, list[str]]]()
    try:
        while todo or above:
            if not todo:
                inode, todo = above.pop()
                below, here = here, os.open("..", os.O_PATH, dir_fd=here)
                os.close(below)
                if os.fstat(here).st_ino != inode:  # another process has moved it
                    break
                with suppress(OSError):
                    os.rmdir(todo.pop(), dir_fd=here)
            elif (below := _full(todo[-1], here, device)) < 0:
                todo.pop()
            else:
                above.append((os.fstat(here).st_ino, todo))
                os.close(here)
                here = below
                todo = os.listdir(here)
    finally:
        os.close(here)


def _full(name: str, parent: int, device: int) -> int:
    """Remove a file or an empty folder. A descriptor of a folder that is not empty and can be entered, else -1."""
    while (why := _why_it_stays(name, parent)) == errno.EBUSY and _unmounted(name, parent):
        pass
    # The kernel says of a folder on which something is mounted that it is busy, before it looks what is in it.
    if why in (errno.ENOTEMPTY, errno.EEXIST) and os.lstat(name, dir_fd=parent).st_dev == device:
        with suppress(OSError):
            os.chmod(name, 0o700, dir_fd=parent)
        with suppress(OSError):
            if os.access(name, os.X_OK, dir_fd=parent):
                return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    return -1


def _why_it_stays(name: str, parent: int) -> int:
    """Remove a file or an empty folder; return the number of the error, 0 where there is none."""
    try:
        try:
            os.unlink(name, dir_fd=parent)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=parent)
    except OSError as error:
        return error.errno or 0
    return 0


def _unmounted(name: str, parent: int) -> bool:
    """Unmount what lies on a file or folder, at once though it may be in use; whether that could be done."""
    import ctypes

    libc, path = ctypes.CDLL(None), os.fsencode(f"/proc/self/fd/{parent}/{name}")
    # Private first: unmounting a copy of a tree of mounts would else unmount what lies in the tree itself.
    is_private = libc.mount(None, path, None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None) == 0
    return is_private and bool(libc.umount2(path, _MNT_DETACH | _UMOUNT_NOFOLLOW) == 0)


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), [int(one) for one in sys.argv[2].split(",") if one], sys.argv[3], sys.argv[5:]))
