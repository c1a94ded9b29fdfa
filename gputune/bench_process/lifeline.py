"""How a worker makes sure that neither it nor what it started outlives the process that started it, and that it goes first
where memory runs out.
"""

from __future__ import annotations

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
    follows the parent's thread, so workers must be started from its main thread.
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


def go_first() -> None:
    """Where memory runs out, have the kernel kill this process, or one that it starts from now on, before any other: it is what
    measures, and whoever started it is to tell of it.

    Source: Linux, proc_pid_oom_score_adj(5).
    """
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
