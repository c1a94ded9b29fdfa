"""The output of the programs that were tuned: in a file of its own, whose end is shown where a tune fails."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import IO

from gputune.errors import MeasureError
from gputune.host.stderr import one_line, show
from gputune.profile import places

KEPT = 20
"""So many logs are kept, the latest ones."""
END_LINES, END_BYTES = 10, 8192


@contextmanager
def kept_log(environ: Mapping[str, str], command: Sequence[str]) -> Iterator[IO[bytes]]:
    """A file for the output of a command. Its end is printed on stderr where the block raises MeasureError."""
    with _opened(_folder(environ), command) as log:
        try:
            yield log
        except MeasureError:
            _print_end(Path(log.name))
            raise


def _folder(environ: Mapping[str, str]) -> Path:
    """Among the user's profiles, or where there are none among the temporary files."""
    folder = places.user_folder(environ)
    try:
        return places.create_folder(folder / "logs" if folder else None)
    except MeasureError:
        return Path(tempfile.gettempdir())


def _opened(folder: Path, command: Sequence[str]) -> IO[bytes]:
    name = next((PurePath(word).name for word in command if word.endswith(".py")), PurePath(command[0]).name)
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    with suppress(OSError):
        logs = sorted(folder.glob("tune-*.log"))
        for old in logs[: max(0, len(logs) + 1 - KEPT)]:
            old.unlink()
    return tempfile.NamedTemporaryFile(
        dir=folder, prefix=f"tune-{moment}-{name[:80]}-", suffix=".log", delete=False, buffering=0
    )


def _print_end(path: Path) -> None:
    with suppress(OSError):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - END_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        for line in lines[-END_LINES:]:
            show(f"    {one_line(line)[:300]}", err=True)
