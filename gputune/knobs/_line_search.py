"""Knows while a step of torch's LBFGS runs, which compares losses more finely than half precision and TF32 do."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache

running: list[None] = []
"""One for each step that runs."""
_around: list[Callable[[], AbstractContextManager[object]]] = []


def enter_in_each(context: Callable[[], AbstractContextManager[object]]) -> None:
    """Have each step run within a context that is made for it."""
    watch()
    _around.append(context)


@contextmanager
def _step() -> Iterator[None]:
    with ExitStack() as around:
        for context in _around:
            around.enter_context(context())
        running.append(None)
        around.callback(running.pop)
        yield


@cache
def watch() -> None:
    from torch.optim import LBFGS

    LBFGS.step = _step()(LBFGS.step)
