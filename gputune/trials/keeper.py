"""The process that owns a command and everything that it starts: `python -m gputune.trials.keeper LIFELINE -- CMD`.

When the command has ended, or the other end of the pipe LIFELINE is closed, nothing of it is left: what its processes
leave behind is handed to this one by the kernel, which kills it. So not even SIGKILL to gputune leaves a rank behind.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from gputune.host.child import TRACKER, TRACKER_SECONDS

_PR_SET_CHILD_SUBREAPER = 36
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""The exit codes that shells use."""


def main(lifeline: int, command: Sequence[str]) -> int:
    """Run the command; return its exit code as a shell would."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.set_inheritable(lifeline, False)
    try:
        child = os.posix_spawnp(command[0], list(command), os.environ)
    except OSError as error:
        print(f"gputune: {command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    code = os.waitstatus_to_exitcode(_status_of(child))
    kill_descendants()
    return code if code >= 0 else 128 - code


def _status_of(child: int) -> int:
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:  # `_end_with` has waited for it, and is about to end this process
            return signal.SIGKILL
        if pid == child:
            return status


def _end_with(lifeline: int) -> None:
    while os.read(lifeline, 64):
        pass
    kill_descendants()
    os._exit(128 + signal.SIGKILL)


def kill_descendants() -> None:
    """Kill all descendants of this process, also those that they start meanwhile, and wait until they are gone: a
    process whose main thread has ended may be a zombie by its state and still hold a GPU's memory. multiprocessing's
    resource trackers come last: they unlink what the others left in /dev/shm.
    """
    import psutil

    patience = time.monotonic() + TRACKER_SECONDS
    while left := psutil.Process().children(recursive=True):
        others = [one for one in left if not _is_tracker(one)]
        for one in others or (left if time.monotonic() > patience else []):
            with suppress(psutil.Error):
                one.kill()
        _reap()
        time.sleep(0.005)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _is_tracker(process: object) -> bool:
    import psutil

    try:
        words = process.cmdline()  # type: ignore[attr-defined]  # psutil.Process, imported late
    except psutil.Error:
        return False
    return any(TRACKER.decode() in word for word in words)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[3:]))
