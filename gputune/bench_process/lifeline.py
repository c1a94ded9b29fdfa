"""How the bench process makes sure that neither it nor what it started outlives its parent, and that it is the first to
be killed when memory runs out.
"""

import ctypes
import os
import select
import signal
from contextlib import suppress
from pathlib import Path

from gputune.host import end_group

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; end at once if that has happened already.

    `parent` is the pid that started us: asking getppid() for 1 would not do, since a subreaper may adopt us. The signal
    follows the parent's thread, not its process: a bench process ends with the thread that started it.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def guard(requests: int) -> None:
    """Start a process that kills our whole group as soon as nobody holds the other end of the pipe `requests`.

    The kernel's signal reaches this process only and not, say, a DataLoader's workers; and a thread that waits for the
    pipe's end never runs while a bench holds the interpreter. Call it before anything large is imported: it forks.
    """
    if os.fork():
        return
    waiting = select.poll()
    waiting.register(requests, 0)  # only the end is reported; the requests are not ours to read
    waiting.poll()
    end_group(os.getpgid(0))


def be_killed_first() -> None:
    """Have the kernel kill this process, and whatever it starts from now on, before any other when memory runs out: the
    parent must survive to report it.

    Source: Linux, proc_pid_oom_score_adj(5).
    """
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
