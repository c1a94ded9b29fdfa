"""Shows the progress of long work: one changing line on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

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
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield status.update


def _line(progress: Progress) -> None:
    if not progress.doing and sys.stderr is not None:
        with suppress(OSError):  # a reader that went away must not end the measuring
            print(f"gputune: {_words(progress)}", file=sys.stderr, flush=True)


def _words(progress: Progress) -> str:
    doing = f": {progress.doing}" if progress.doing else ""
    return f"[{progress.number}/{progress.count}] {progress.bench}, up to {progress.seconds:.0f} s{doing}"
