"""Tells gputune's own setting of torch's flags from the program's."""

from collections.abc import Iterator
from contextlib import contextmanager

SET_BENCHMARK = "_set_cudnn_benchmark"
"""The function of `torch._C` through which everything in Python sets whether cuDNN searches."""
_writing: list[None] = []


def is_written_by_us() -> bool:
    """Whether gputune is setting torch's flags now."""
    return bool(_writing)


@contextmanager
def by_us() -> Iterator[None]:
    _writing.append(None)
    try:
        yield
    finally:
        _writing.pop()
