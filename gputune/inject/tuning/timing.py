"""A run whose steps are timed as they are, with nothing of gputune's in them but what it was started with."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .blocks import Clock

if TYPE_CHECKING:
    from .run import Run


def work(run: Run) -> Iterator[int]:
    """Time the first steps together, since some of them compile, then blocks as they are ordered."""
    begun = time.perf_counter()
    yield 1
    clock = Clock(run.device)
    run.send(first=time.perf_counter() - begun)
    order = run.receive()
    for _ in range(order["steps"]):
        yield 1
        run.send(passed=1)
    run.send(block={**clock.stop(), "steps": order["steps"], "applied": run.rows()})
    while True:
        order = run.receive()
        yield 1  # since there was a pause
        clock = Clock(run.device)
        yield order["steps"]
        run.send(block={**clock.stop(), "steps": order["steps"]})
