"""What a dataset shares with other processes: pipes, sockets, queues, locks, memory.

A forked process that loads a sample with these asks another process in place of its parent, takes what was meant for
it, or changes what it has. So this is looked for before a process is forked, and what is not found fails in there.
"""

import io
import logging
import os
import stat
import sys
import types
from pathlib import Path
from typing import Any

from .sample_state import FIRST, is_elsewhere, reached

DATABASES = (("cursor", "commit"), ("execute", "fetchone"))
"""What the connections and the cursors of any database have."""
SHARED = {
    "socket.socket", "subprocess.Popen",
    *(f"multiprocessing.{one}" for one in
      ("connection", "heap", "managers", "pool", "queues", "sharedctypes", "synchronize")),
}  # fmt: skip
"""Classes, and modules whose classes, are of objects that several processes hold, or that lead to another process."""
CONNECTION = FIRST + "an open database connection"
WITH_OTHERS = FIRST + "a pipe, a socket, a lock or memory that it shares with other processes"
STDIN, STDOUT, STDERR = 0, 1, 2


def held_with_others(*roots: Any) -> str | None:
    """Why no forked process may load a single sample of what these objects hold and refer to: it would ask another
    process in place of this one, or change what this one has. In plain words.
    """
    for one, _ in reached(roots, _is_no_instance):
        if any(all(hasattr(type(one), name) for name in names) for names in DATABASES):
            return CONNECTION
        if _is_shared(one):
            return WITH_OTHERS
    return None


def _is_no_instance(one: Any) -> bool:
    """Whether it is a module, a function or a class of a library, or logs."""
    if isinstance(one, (logging.Logger, logging.Handler)):
        return True
    return is_elsewhere(one) and isinstance(
        one, (types.ModuleType, types.BuiltinFunctionType, types.FunctionType, type)
    )


def _is_shared(one: Any) -> bool:
    if any({kind.__module__, f"{kind.__module__}.{kind.__name__}"} & SHARED for kind in type(one).__mro__):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(one, torch.Tensor):
        return one.device.type == "cpu" and one.layout == torch.strided and bool(one.is_shared())
    try:
        number = one.fileno() if isinstance(one, io.IOBase) else None
    except (OSError, ValueError):  # closed, or in memory
        return False
    # A forked process of multiprocessing has no standard input.
    return number == STDIN or (isinstance(number, int) and number > STDERR and _is_channel(number))


def _is_channel(number: int) -> bool:
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def without_channels(*kept: int) -> None:
    """Have whatever a forked process reads from standard input and its parent's pipes and sockets, or writes to these,
    fail there. Standard output stays, and so do the descriptors that are `kept`.
    """
    # To read from it raises; from an empty file it would not.
    sys.stdin = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    tracker = sys.modules.get("multiprocessing.resource_tracker")  # another one would remove what this one tracks
    spared = {STDOUT, STDERR, *kept, getattr(getattr(tracker, "_resource_tracker", None), "_fd", None)}
    try:
        numbers = [int(one.name) for one in Path("/proc/self/fd").iterdir()]
    except OSError:  # no /proc
        return
    nothing = os.open(os.devnull, os.O_PATH)
    for number in numbers:
        try:
            if number not in spared and (number == STDIN or _is_channel(number)):
                os.dup2(nothing, number, inheritable=False)
        except OSError:  # closed meanwhile, as is the one of the list itself
            continue
