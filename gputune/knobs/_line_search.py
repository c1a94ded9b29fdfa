"""Whether a step of torch's LBFGS runs, which compares losses more finely than half precision does."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

running: list[None] = []
"""One for each step that runs."""


@contextmanager
def _step() -> Iterator[None]:
    running.append(None)
    try:
        yield
    finally:
        running.pop()


@cache
def watch() -> None:
    from torch.optim import LBFGS

    LBFGS.step = _step()(LBFGS.step)
