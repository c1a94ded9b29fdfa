"""A command below a keeper, so that nothing of it outlives its end, or the process that started it."""

import errno
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from gputune.host import keeper
from gputune.host.starting import isolated_python, pipe, signals_held

PATIENCE_SECONDS = 10.0
"""How long to wait for the end of a command that is killed, which a driver may keep in the kernel."""
LONGEST_FOLDER = 64
"""The most bytes in the name of a folder for temporary files: Linux takes names of sockets up to 107, and torch's and
multiprocessing's own are 35 bytes longer than that of the folder."""
_SCRIPT = Path(keeper.__file__)


class Kept:
    """A command that runs, or without `words` just a folder that is kept. Call `end` once it is no longer needed."""

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str] | None = None,
        *,
        handed: Sequence[int] = (),
        output: IO[bytes] | int = subprocess.DEVNULL,
        folder: str = "",
    ) -> None:
        """Start it in a session of its own. `handed` are descriptors for it; a folder is removed with it. Raises
        OSError where no process can be started; that this command cannot be shows in its exit code, 126 or 127, alone.
        """
        self._folder = folder
        reader, lifeline = pipe()
        self._lifeline = [lifeline]
        try:
            with signals_held():
                self._process = subprocess.Popen(
                    [*keeper_words(reader, handed, folder), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[reader, *handed],
                    start_new_session=True,
                    env=None if environ is None else dict(environ),
                )
        except BaseException:
            os.close(lifeline)
            if hasattr(self, "_process"):  # a signal, which was held until here
                self._process.wait()
            raise
        finally:
            os.close(reader)

    @property
    def pid(self) -> int:
        """The keeper's, which leads the process group of everything that the command starts."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def code(self, seconds: float = 0.0) -> int | None:
        """The exit code, less than zero for a signal; None where the command does not end within so long."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code - 128 in signal.valid_signals() else code

    def end(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Have the command killed with all that it started, and wait for that; from any thread, also again."""
        try:
            lifeline = self._lifeline.pop()
        except IndexError:  # another call does it, or has done it
            lifeline = None
        if lifeline is not None:
            with suppress(BrokenPipeError):
                os.write(lifeline, b".")  # a copy of this process by fork may hold the pipe open
            os.close(lifeline)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_seconds)
        code = self._process.returncode
        if lifeline is not None and (code is None or code < 0):  # something has killed the keeper, or must
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing more can be done from here
                self._process.wait(0.1)
            if self._folder:
                keeper.remove(self._folder)


def keeper_words(lifeline: int, handed: Sequence[int] = (), folder: str = "") -> list[str]:
    """What comes before the words of a command that is to run below a keeper."""
    return [*isolated_python(), str(_SCRIPT), str(lifeline), ",".join(map(str, handed)), folder, "--"]


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
