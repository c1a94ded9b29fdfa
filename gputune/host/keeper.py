"""The process that owns a command, everything that this starts, and a folder: `python keeper.py LIFELINE HANDED FOLDER
[-- CMD]`, of the standard library alone.

When CMD has ended, or something comes through the pipe LIFELINE, or nobody holds its other end any more, nothing of it
is left: the kernel hands this process what CMD's processes leave behind, and it kills that and removes FOLDER. So not
even SIGKILL to gputune leaves anything, however deep a process of CMD hangs in a library, and whatever wrapper it was
started through.

HANDED are the descriptors that only CMD may hold, with commas between them; an error of the start is written to the
last one, as JSON. FOLDER is made, where that is possible, and named to CMD in the variable GPUTUNE_TEMPORARY. Without
CMD it is kept as long as LIFELINE.
"""

import ctypes
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

VARIABLE = "GPUTUNE_TEMPORARY"
"""The environment variable that names FOLDER to the command; it is not there where the folder could not be made."""
NOT_STARTED = "not_started"
"""The key, in the object that is written then, of the number of the error for which the command did not start."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""The exit codes that shells use."""
TRACKERS = (b"multiprocessing.resource_tracker", b"torch_shm_manager")
"""Parts of the command lines of processes that, once their last client is gone, unlink in /dev/shm what it left."""
TRACKER_SECONDS = 3.0
"""How long to wait for a tracker to end, about 0.05 s after its last client. One still in use is not waited for."""
SEMAPHORES, STORAGES = "/dev/shm/sem.", "/dev/shm/torch_"
"""How the paths of named semaphores and of torch's shared tensors begin. A process that is killed while it creates one
leaves it: a semaphore before it has told the tracker, which may have to be started first, and even before glibc has
renamed it from six letters; a tensor before it has unlinked the name, which is the next thing that it does."""
CREATING_SECONDS = 10.0
"""The most since a semaphore was created whose name has six letters: an older one may have been meant to stay."""
EXEC_SECONDS = 0.2
"""How long to wait for the command line of a process in the middle of exec, which takes well below 1 ms."""
REMOVING_SECONDS = 3.0
"""How long to try to remove a folder in which a process of another owner, about to end, may still write."""
_LONGEST_PAUSE_SECONDS = 0.1
_PR_SET_CHILD_SUBREAPER = 36
_POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that come to all processes of a job at once. What ends a keeper is the lifeline."""


def main(lifeline: int, handed: Sequence[int], folder: str, command: Sequence[str]) -> int:
    """Run the command until its end or the lifeline's; return its exit code as a shell would."""
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
    """Create a folder for this user alone, unless the process at the other end of LIFELINE was faster; whether it is
    there. Others can read its name and make one of theirs in its place, which is not taken.
    """
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
            if not _has_proc():
                os.kill(child, signal.SIGKILL)  # all that is known of
            return 128 + signal.SIGKILL


def end_descendants() -> None:
    """Kill all descendants of this process, also those that they start meanwhile, and wait until they are gone: a
    process whose main thread has ended may be a zombie by its state and still hold a GPU's memory. Trackers come last.
    """
    patience, pause = time.monotonic() + TRACKER_SECONDS, 0.001
    shared: set[int] = set()
    while _has_children():
        if not _has_proc() and time.monotonic() > patience:
            break
        left = _descendants()
        trackers = [pid for pid in left if any(name in _program(pid) for name in TRACKERS)]
        others = [pid for pid in left if pid not in trackers]
        for pid in others + (trackers if time.monotonic() > patience else []):
            with suppress(OSError):
                if _started(pid) == left[pid]:  # and no other process has got its number
                    shared |= _shared(pid)
            with suppress(OSError):
                if _started(pid) == left[pid]:
                    os.kill(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(2 * pause, 0.005 if time.monotonic() < patience else _LONGEST_PAUSE_SECONDS)
    _unlink(shared)


def _shared(pid: int) -> set[int]:
    """Stop a process; return the inodes of the semaphores and tensors that it has or is creating, whose names may
    change.
    """
    os.kill(pid, signal.SIGSTOP)
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        found = {int(line.split()[4]) for line in file if f" {SEMAPHORES}" in line or f" {STORAGES}" in line}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith((SEMAPHORES, STORAGES)):
                found.add(os.stat(f"/proc/{pid}/fd/{name}").st_ino)
    return found


def _unlink(shared: set[int]) -> None:
    with suppress(OSError):
        for entry in os.scandir(os.path.dirname(SEMAPHORES)) if shared else ():
            if entry.inode() in shared and (entry.path.startswith(STORAGES) or _is_forgotten(entry)):
                os.unlink(entry)


def _is_forgotten(entry: "os.DirEntry[str]") -> bool:
    """Whether it is a semaphore of multiprocessing's, or one that was being created, and not a program's own."""
    name = entry.path.removeprefix(SEMAPHORES)
    being_created = len(name) == 6 and name.isalnum() and time.time() - entry.stat().st_ctime < CREATING_SECONDS
    return name.startswith("mp-") or being_created


def _has_children() -> bool:
    """Whether there are any, once those that have ended are gone."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _has_proc() -> bool:
    return os.path.exists(f"/proc/{os.getpid()}/stat")


def _descendants() -> dict[int, bytes]:
    """When each of them was started, in the kernel's ticks."""
    children: dict[int, list[int]] = {}
    started: dict[int, bytes] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):
            with suppress(OSError, ValueError):
                pid, fields = int(name), _stat(int(name))
                children.setdefault(int(fields[1]), []).append(pid)
                started[pid] = fields[19]
    found = list(children.get(os.getpid(), ()))
    for pid in found:  # which grows
        found += children.get(pid, ())
    return {pid: started[pid] for pid in found}


def _started(pid: int) -> bytes:
    return _stat(pid)[19]


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name: state, parent, and so on."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _program(pid: int) -> bytes:
    """A process's command line; one in the middle of exec has none for a moment, which is waited out."""
    patience = time.monotonic() + EXEC_SECONDS
    while not (line := _command_line(pid)) and not _has_ended(pid) and time.monotonic() < patience:
        time.sleep(0.001)
    return line


def _command_line(pid: int) -> bytes:
    """A process's command line; empty if it has ended, whether or not its parent has waited for it."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _has_ended(pid: int) -> bool:
    try:
        return _stat(pid)[0] == b"Z"
    except OSError:
        return True


def remove(folder: str) -> None:
    """Remove a folder of this user's with all that is in it, as far as that is possible; folders that were made
    read-only too.
    """
    import shutil

    if not _is_own(folder):
        return
    patience = time.monotonic() + REMOVING_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while _is_own(folder) and time.monotonic() < patience:
        time.sleep(0.01)
        with suppress(OSError):
            os.chmod(folder, 0o700)
            for base, names, _ in os.walk(folder):
                for path in (os.path.join(base, name) for name in names):
                    if not os.path.islink(path):
                        os.chmod(path, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), [int(one) for one in sys.argv[2].split(",") if one], sys.argv[3], sys.argv[5:]))
