"""How the user's command is started, below a keeper, and how shells above its processes are kept from going on."""

from __future__ import annotations

import getpass
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gputune.host.kept import keeper_words, pipe, signals_held
from gputune.inject import payload
from gputune.inject.scratch._trackers import variables
from gputune.runtime.environment import SHIM

START_SECONDS = 600.0
"""Within this time a program is to take its first step: it may prepare its data before."""
SCRATCH, TEMPORARY = "scratch", "tmp"
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "busybox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How the user's command is started each time."""

    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    """A private folder, for the socket and for checkpoints."""
    log: IO[bytes]
    """Where stdout and stderr of the command go."""
    allow_writes: bool = False
    trains: bool | None = None
    """Whether the program takes an optimizer's steps; None as long as nobody knows."""
    start_seconds: float = START_SECONDS


def spawn(start: Start, text: str) -> tuple[subprocess.Popen[bytes], int]:
    """The keeper with the command below it, and our end of the pipe whose closing ends both."""
    environ = {**_with_temporary_folder(start), payload.VARIABLE: text}
    before = environ.get("PYTHONPATH", "")
    environ["PYTHONPATH"] = f"{SHIM}{os.pathsep}{before}" if before else SHIM
    if not start.allow_writes:
        environ |= variables(str(start.folder / SCRATCH))
    reader, writer = pipe()
    try:
        with signals_held():
            keeper = subprocess.Popen(
                [*keeper_words(reader), *start.command],
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


def _with_temporary_folder(start: Start) -> dict[str, str]:
    """The environment with the temporary folder inside the run's own, which is deleted with what ended processes left
    there; inductor's compiled code stays where torch keeps it without being told.
    """
    folder = start.folder / TEMPORARY
    folder.mkdir(exist_ok=True)
    with suppress(OSError, KeyError):
        compiled = Path(tempfile.gettempdir()) / f"torchinductor_{getpass.getuser()}"
        return {"TORCHINDUCTOR_CACHE_DIR": str(compiled), **start.environ, "TMPDIR": str(folder)}
    return {**start.environ, "TMPDIR": str(folder)}


def kill_shells(pids: Sequence[int], keeper: int) -> bool:
    """Kill the shells between the keeper and these processes, which would go on with their next line; whether there
    were any.
    """
    import psutil

    found = False
    for pid in pids:
        with suppress(psutil.Error):
            for parent in psutil.Process(pid).parents():
                if parent.pid == keeper:
                    break
                if parent.name() in SHELLS:
                    found = True
                    parent.kill()
    return found
