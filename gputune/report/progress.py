"""Shows the progress of long work, with the elapsed time: one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from gputune.host.stderr import one_line, say
from gputune.progress import READING, Progress
from gputune.report.fitting import CUT, cells, cut, fits, shortened

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

HEARTBEAT_SECONDS = 60.0
"""How long a part goes on until another line tells of it, where lines stay."""
LEAST_CUT = len(CUT) + 2
"""The cells in which something of a text is left where it is cut, be its first character a wide one."""
LEAST_SHORTENED = 16
"""The cells in which what is being done can still be told from something else once its middle is cut out."""


@contextmanager
def shown(first: Progress | None = None, *, lines: bool = True) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows progress on stderr until the block ends. Where stderr is no terminal, each part gets
    a line, or none without `lines`. A reader that went away does not end the work.
    """
    console: Any = None
    if sys.stderr is not None and sys.stderr.isatty():
        from gputune.report.tables import console_of

        console = console_of(_Lasting(sys.stderr))  # type: ignore[arg-type]  # all that rich asks of a stream
    if console is None or not console.is_terminal or console.is_dumb_terminal:
        yield _Lines().tell if lines else lambda progress: None
        return
    from rich.live import Live

    line = _ChangingLine(console, first or Progress(part=READING))
    # rich would take a closed stdout for its own and not give it back.
    with Live(console=console, get_renderable=line.drawn, transient=True, redirect_stdout=False):
        yield line.tell


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what is being waited for, until the block ends, and elsewhere nothing."""
    with shown(Progress(part=what), lines=False):
        yield


class _Lines:
    """Lines that stay: one when a part begins, then one a minute. None is before them: a refusal is one line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._began = clock, clock()
        self._parts: set[str] = set()
        self._latest = 0.0

    def tell(self, progress: Progress) -> None:
        if progress.part == READING:
            return
        head, now = head_of(progress), self._clock()
        is_new = head not in self._parts
        if is_new or now - self._latest >= HEARTBEAT_SECONDS:
            self._parts.add(head)
            self._latest = now
            say(words(replace(progress, doing="") if is_new else progress, now - self._began))


class _ChangingLine:
    """The line of a terminal: what was told last, and how long the whole work has taken until now."""

    def __init__(self, console: Console, first: Progress) -> None:
        from rich.spinner import Spinner

        self._console, self._began = console, time.monotonic()
        self._spinner = Spinner("dots" if console.encoding.startswith("utf") else "line")
        self.tell(first)

    def tell(self, progress: Progress) -> None:
        self._progress = progress

    def drawn(self) -> Text:
        from rich.text import Text

        frame = str(self._spinner.render(self._console.get_time()))
        text = words(self._progress, time.monotonic() - self._began, self._console.width - len(frame) - 1)
        return Text(f"{frame} {text}", no_wrap=True, overflow="crop", end="")


class _Lasting:
    """A stream that may go away: what is written then is lost."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


def words(progress: Progress, elapsed: float, width: int | None = None) -> str:
    """One line: what is done, and the elapsed time. What is too long for the width is cut before the time, in the
    middle of what is being done of a part.
    """
    doing = f": {progress.doing}" if progress.doing else ""
    said, ends = one_line(f"{head_of(progress)}{doing}"), f" ({elapsed_words(elapsed)})"
    if width is None or fits(said + ends, width):
        return said + ends
    room = width - len(ends)
    head = one_line(head_of(progress))
    left = room - cells(f"{head}: ")
    if doing and left >= LEAST_SHORTENED:
        return f"{head}: {shortened(progress.doing, left)}{ends}"
    if room >= LEAST_CUT:
        return cut(said, room) + ends
    return cut(said, width) if width >= LEAST_CUT else ""


def head_of(progress: Progress) -> str:
    return f"[{progress.number}/{progress.count}] {progress.part}" if progress.number else progress.part


def elapsed_words(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
