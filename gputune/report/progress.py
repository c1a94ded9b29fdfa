"""Shows the progress of long work: one changing line on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gputune.host.stderr import say
from gputune.probing import Progress


@contextmanager
def shown() -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows the progress of a probe on stderr until the block ends."""
    with waiting("reading this machine's facts ...") as update:
        yield (lambda progress: update(_words(progress))) if update else _line


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal what is being waited for, until the block ends, and yield a function that replaces the text.

    Elsewhere show nothing and yield None.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from gputune.report.tables import console_of, plain

    with console_of(sys.stderr).status(plain(what)) as status:
        yield lambda text: status.update(plain(text))


def _line(progress: Progress) -> None:
    if not progress.doing:
        say(_words(progress))  # a reader that went away does not end the measuring


def _words(progress: Progress) -> str:
    doing = f": {progress.doing}" if progress.doing else ""
    return f"[{progress.number}/{progress.count}] {progress.bench}, up to {progress.seconds:.0f} s{doing}"
