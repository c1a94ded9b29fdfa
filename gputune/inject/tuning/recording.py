"""A guard run: losses, gradients and optimizer steps are recorded, and nothing is timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .chance import other_numbers
from .recorder import Recorder

if TYPE_CHECKING:
    from .run import Run


def work(run: Run) -> Iterator[int]:
    """Record as many iterations as are ordered."""
    _draw_as_eager()
    recorder = Recorder()
    recorder.start()
    if run.trial.other_numbers:
        other_numbers(lambda: recorder.is_compared)
    yield 1
    recorder.stepped()
    run.send(first=1)
    order = run.receive()
    for _ in range(order["steps"] - 1):
        yield 1
        recorder.stepped()
        run.send(passed=1)
    run.send(recorded=recorder.plain(), applied=run.rows())
    while True:
        run.receive()


def _draw_as_eager() -> None:
    """Have what torch.compile makes draw the random numbers that the same code draws uncompiled."""
    from torch._inductor import config

    config.fallback_random = True
