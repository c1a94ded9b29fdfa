"""How the user's command is started, below a keeper, and where its output goes."""

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path, PurePath
from typing import IO

from gputune.errors import MeasureError
from gputune.host.kept import keeper_words, pipe, signals_held
from gputune.host.stderr import as_printed, show
from gputune.live import orders, payload
from gputune.live.scratch._trackers import variables
from gputune.profile import places
from gputune.runtime.environment import python_path
from gputune.trials.user_files import compiled_code, words_above_copies

SCRATCH, TEMPORARY = "scratch", "tmp"
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    """A private folder, for the socket and for checkpoints."""
    log: IO[bytes]
    allow_writes: bool = False
    above_copies: bool = False
    """Whether it runs above copies of the user's folders. Otherwise what Python writes goes to a scratch folder."""
    free_bytes: int | None = None
    """The free memory, for copies that no disk can take."""
    trains: bool | None = None
    """Whether the program takes an optimizer's steps; None as long as nobody knows."""
    until: float = inf
    """The time of the monotonic clock until which the tune may take."""


def spawn(start: Start, text: str, assignment: orders.Assignment) -> tuple[subprocess.Popen[bytes], int]:
    """The keeper with the command below it, and our end of the pipe whose closing ends both."""
    folder, environ = start.folder / TEMPORARY, dict(start.environ)
    folder.mkdir(exist_ok=True)
    with suppress(OSError, KeyError):  # inductor's compiled code stays, and the temporary folder is deleted
        Path(environ.setdefault("TORCHINDUCTOR_CACHE_DIR", compiled_code())).mkdir(parents=True, exist_ok=True)
    environ |= {"TMPDIR": str(folder), payload.VARIABLE: text, payload.TUNE: assignment.text}
    environ["PYTHONPATH"] = python_path(environ.get("PYTHONPATH", ""))
    if not start.allow_writes:
        environ |= variables(str(start.folder / SCRATCH))
    words = start.command
    if start.above_copies:
        words = words_above_copies(start.folder, words, environ, memory_bytes=start.free_bytes)
    reader, writer = pipe()
    try:
        with signals_held():
            keeper = subprocess.Popen(
                [*keeper_words(reader), *words],
                stdin=subprocess.DEVNULL,
                stdout=start.log,
                stderr=start.log,
                pass_fds=[reader],
                start_new_session=True,
                env=environ,
            )
    finally:
        os.close(reader)
    return keeper, writer


def kill_shells(pids: Sequence[int], keeper: int) -> bool:
    """Kill the shells above these processes, which would go on with their next line; whether there were any."""
    import psutil

    found = False
    for pid in pids:
        with suppress(psutil.Error, ValueError):  # as for a negative number
            for parent in psutil.Process(pid).parents():
                if parent.pid == keeper:
                    break
                if parent.name() in SHELLS:
                    found = True
                    parent.kill()
    return found


NO_ROOM = ("No space left on device", "Disk quota exceeded", "unexpected pos")
"""What the system says, and torch as it saves a checkpoint."""
ROOM_BYTES = 1 << 20
"""With less room than this in a folder what is written there fails."""


def is_without_room(folder: Path, said: str) -> bool:
    """Whether a start, which failed with these words, found no room for what it wrote: in its folder, or in memory."""
    with suppress(OSError):
        if shutil.disk_usage(folder).free < ROOM_BYTES:
            return True
    return any(words in said for words in NO_ROOM)


KEPT = 20
"""So many logs are kept, the latest ones."""
NAME = re.compile(r"tune-\d{8}-\d{6}-.+-[a-z0-9_]{8}\.log", re.DOTALL)
END_LINES, END_BYTES = 10, 8192


@contextmanager
def kept_log(environ: Mapping[str, str], command: Sequence[str]) -> Iterator[IO[bytes]]:
    """A file for the output of a command, among the user's profiles, or where there are none among the temporary files.
    Its end is printed on stderr where the block raises MeasureError.
    """
    user_folder = places.user_folder(environ)
    try:
        folder = places.create_folder(user_folder / "logs" if user_folder else None)
        _prune(folder)
    except MeasureError:
        folder = Path(tempfile.gettempdir())
    with _opened(folder, command) as log:
        try:
            yield log
        except MeasureError:
            _print_end(Path(log.name))
            raise


def _prune(folder: Path) -> None:
    """Make room for one more in a folder of gputune's; what is named otherwise is the user's."""
    with suppress(OSError):
        logs = sorted(one for one in folder.iterdir() if NAME.fullmatch(one.name) and _is_own_file(one))
        for old in logs[: max(0, len(logs) + 1 - KEPT)]:
            old.unlink()


def _is_own_file(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _opened(folder: Path, command: Sequence[str]) -> IO[bytes]:
    name = next((PurePath(word).name for word in command if word.endswith(".py")), PurePath(command[0]).name)
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return tempfile.NamedTemporaryFile(
        dir=folder, prefix=f"tune-{moment}-{name[:80]}-", suffix=".log", delete=False, buffering=0
    )


def _print_end(path: Path) -> None:
    with suppress(OSError):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - END_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        for line in lines[-END_LINES:]:
            show(f"    {as_printed(line)[:300]}", err=True)
