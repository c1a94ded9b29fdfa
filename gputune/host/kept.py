"""A command that ends with this process, and how it is started whatever descriptors and signals this process has."""

import errno
import fcntl
import math
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from gputune.host import keeper

PATIENCE_SECONDS = 10.0
"""How long to wait for the end of a command that is killed, which a driver may keep in the kernel."""
LONGEST_FOLDER = 64
"""The most bytes in the name of a folder for temporary files: Linux takes names of sockets up to 107, and torch's and
multiprocessing's own are 35 bytes longer than that of the folder."""
LONGEST_WITH_SOCKET = 100
"""The most bytes in the name of a folder in which this process itself has a socket, of a name as short as `socket`."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals with which a user, a scheduler or a terminal ends a program."""


class Kept:
    """A command that runs, or without `words` just a folder that is kept. Call `end` once it is no longer needed."""

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str] | None = None,
        *,
        handed: Sequence[int] = (),
        output: IO[bytes] | int = subprocess.DEVNULL,
        folder: str | None = "",
    ) -> None:
        """Start it in a session of its own. `handed` are descriptors for it; a folder is removed with it. Raises
        OSError where no process can be started; that this command cannot be shows in its exit code, 126 or 127, alone.

        A keeper takes 20 ms to start. With None for the folder there is none, and the command itself asks the kernel
        for its end with this process.
        """
        self._folder, self._owner = folder, os.getpid()
        reader, lifeline = pipe()
        self._lifeline = [lifeline]
        try:
            with signals_held():
                self._process = subprocess.Popen(
                    [*([] if folder is None else keeper_words(reader, handed, folder)), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[reader, *handed],
                    start_new_session=True,
                    env=None if environ is None else dict(environ),
                )
        except BaseException:
            if hasattr(self, "_process"):  # a signal, which was held until here
                self.end()
            else:
                os.close(lifeline)
            raise
        finally:
            os.close(reader)

    @property
    def pid(self) -> int:
        """The keeper's, which leads the process group of everything that the command starts."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def code(self, seconds: float = 0.0) -> int | None:
        """The exit code, less than zero for a signal; None where the command does not end within so long."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code - 128 in signal.valid_signals() else code

    def end(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Kill the command with all that it started, and wait; from any thread, also again. A copy by fork does not."""
        try:
            lifeline = self._lifeline.pop()
        except IndexError:  # another call does it, or has done it
            lifeline = None
        is_owner = os.getpid() == self._owner
        if lifeline is not None:
            with suppress(BrokenPipeError):
                if is_owner:
                    os.write(lifeline, b".")  # a copy by fork may hold the pipe open
            os.close(lifeline)
        if not is_owner:
            return
        if self._folder is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_seconds)
        code = self._process.returncode
        if lifeline is not None and (code is None or code < 0):  # something has killed the keeper, or must
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing more can be done from here
                self._process.wait(patience_seconds if self._folder is None else 0.1)
            keeper.remove(self._folder or "")


def keeper_words(lifeline: int, handed: Sequence[int] = (), folder: str = "") -> list[str]:
    """The words to put before a command so that it runs below a keeper process."""
    return [*isolated_python(), keeper.__file__, str(lifeline), ",".join(map(str, handed)), folder, "--"]


def isolated_python() -> list[str]:
    """The words that start this Python without a user's modules and site hooks."""
    # -I would hide PYTHONHOME, without which a Python that was moved finds no standard library.
    return [sys.executable, *(["-P", "-s"] if os.environ.get("PYTHONHOME") else ["-I"]), "-S"]


def new_folder() -> str:
    """The name for a folder of one's own inside the temporary folder; empty where there is none, or it is too long."""
    try:
        name = _new_name()
    except OSError:
        return ""
    return name if len(os.fsencode(name)) <= LONGEST_FOLDER else ""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is removed in the end, also where this process does not live to do it. Raises OSError."""
    folder = _new_name()
    if len(os.fsencode(folder)) > LONGEST_WITH_SOCKET:
        why = "the name of this folder for temporary files is too long for sockets in it: name another one in TMPDIR"
        raise OSError(errno.ENAMETOOLONG, why, os.path.dirname(folder))  # noqa: PTH120 - a text
    kept = Kept((), folder=folder)
    try:
        if not keeper.make(folder):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), folder)
        yield Path(folder)
    finally:
        kept.end()


def _new_name() -> str:
    """Raises FileNotFoundError where there is no folder for temporary files."""
    import tempfile

    return f"{tempfile.gettempdir()}/gputune-{os.urandom(4).hex()}"


def pipe() -> tuple[int, int]:
    """A pipe whose ends are none of a child's standard streams. Raises OSError if no more files can be opened."""
    reader, writer = os.pipe()
    try:
        reader = lifted(reader)
    except OSError:
        os.close(writer)
        raise
    try:
        return reader, lifted(writer)
    except OSError:
        os.close(reader)
        raise


def lifted(descriptor: int) -> int:
    """The descriptor, or another one of 3 or above in its place. Raises OSError, and closes it then."""
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def readable(descriptors: Iterable[int], seconds: float) -> set[int]:
    """The descriptors on which something, or the end, can be read within so long. select(2) takes none above 1,023."""
    waiting = select.poll()
    for descriptor in descriptors:
        waiting.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in waiting.poll(max(0, math.ceil(seconds * 1000)))}


@contextmanager
def signals_held() -> Iterator[None]:
    """Delay Python's signal handlers: one that raises in the middle of Popen would leave an unknown child."""
    if threading.current_thread() is not threading.main_thread():  # only that one runs handlers
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in ENDING}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in held:
            signal.signal(number, lambda number, frame: came.append(number))
        yield
    finally:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)  # one that came now could end this half way
        try:
            for number, handler in held.items():
                signal.signal(number, handler)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for one in came:
            signal.raise_signal(one)
