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

from .sample_state import FIRST, is_a_librarys, is_elsewhere, names_in, reached

DATABASES = (("cursor", "commit"), ("execute", "fetchone"))
"""What the connections and the cursors of any database have."""
SHARED = {
    "socket.socket", "subprocess.Popen", "queue.Queue", "_queue.SimpleQueue",
    *(f"multiprocessing.{one}" for one in
      ("connection", "heap", "managers", "pool", "queues", "shared_memory", "sharedctypes", "synchronize")),
}  # fmt: skip
"""Classes, and modules whose classes, are of objects that several processes or threads hold, or that lead to another
process."""
CONNECTION = FIRST + "an open database connection"
WITH_OTHERS = FIRST + "a queue, a pipe, a socket, a lock or memory that it shares with others"
ASKS = "its dataset asks whether it is in a worker"
STDIN, STDOUT, STDERR = 0, 1, 2


def held_with_others(*roots: Any) -> str | None:
    """Why no forked process may load a single sample of what these objects hold and refer to: it would ask another
    process in place of this one, or change what this one has. In plain words.
    """
    shared = _shared_memory()
    for one, _ in reached(roots, _is_no_instance):
        if any(all(hasattr(type(one), name) for name in names) for names in DATABASES):
            return CONNECTION
        if _is_shared(one) or any(first <= _address(one) < end for first, end in shared):
            return WITH_OTHERS
        if isinstance(one, types.FunctionType) and "get_worker_info" in names_in(one.__code__):
            return ASKS
    return None


def _is_no_instance(one: Any) -> bool:
    """Whether it is a module, a function or a class of a library, or logs."""
    if isinstance(one, (logging.Logger, logging.Handler)):
        return True
    if isinstance(one, type):
        return is_elsewhere(one) or is_a_librarys(str(getattr(sys.modules.get(one.__module__), "__file__", "")))
    return is_elsewhere(one) and isinstance(one, (types.ModuleType, types.BuiltinFunctionType, types.FunctionType))


def _is_shared(one: Any) -> bool:
    if any({kind.__module__, f"{kind.__module__}.{kind.__name__}"} & SHARED for kind in type(one).__mro__):
        return True
    try:
        number = one.fileno() if isinstance(one, io.IOBase) else None
    except (OSError, ValueError):  # closed, or in memory
        return False
    # A forked process of multiprocessing has no standard input.
    return number == STDIN or (isinstance(number, int) and number > STDERR and _is_channel(number))


def _shared_memory() -> list[tuple[int, int]]:
    """The addresses of the memory that this process may write to and that others see."""
    try:
        lines = [line.split() for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()]
    except OSError:  # no /proc
        return []
    spans = [span.split("-") for span, mode, *_ in lines if mode[1] == "w" and mode[3] == "s"]
    return [(int(first, 16), int(end, 16)) for first, end in spans]


def _address(one: Any) -> int:
    """That of an array's or a tensor's memory; 0 if it has none."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and isinstance(one, torch.Tensor):
            return int(one.data_ptr()) if one.device.type == "cpu" else 0
        return int(one.__array_interface__["data"][0]) if hasattr(type(one), "__array_interface__") else 0
    except Exception:  # without memory of its own, as of a sparse tensor
        return 0


def has_printed() -> bool:
    if sys.stdout is not None:
        sys.stdout.flush()
    return os.fstat(STDOUT).st_size > 0


def _is_channel(number: int) -> bool:
    mode = os.fstat(number).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def without_channels(*kept: int) -> None:
    """Have whatever a forked process reads from standard input and its parent's pipes and sockets, or writes to these,
    fail there, except for descriptors that are `kept`. What it prints is not seen; `has_printed` tells of it.
    """
    for number in (STDOUT, STDERR):
        os.dup2(os.memfd_create("printed"), number)
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
