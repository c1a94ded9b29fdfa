"""How the bench process makes sure that it does not outlive its keeper, and that it is the first to be killed when
memory runs out.
"""

import ctypes
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_keeper() -> None:
    """Have the kernel kill this process when its keeper ends before it, as where something kills both gputune's own."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def be_killed_first() -> None:
    """Have the kernel kill this process, and whatever it starts from now on, before any other when memory runs out: the
    parent must survive to report it.

    Source: Linux, proc_pid_oom_score_adj(5).
    """
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
