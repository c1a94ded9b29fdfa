"""A run whose steps are timed as they are, with nothing of gputune's in them but what it was started with."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from .blocks import Clock

if TYPE_CHECKING:
    from .run import Run


def work(run: Run) -> Iterator[int]:
    """Time the first steps together, since some of them compile, then blocks as they are ordered."""
    begun = time.perf_counter()
    run_from = yield from _first(run, begun)
    while True:
        order = run.receive()
        clock = Clock(run.device)
        run.loaders.seconds = 0.0
        yield order["steps"]
        run.send(block={**clock.stop(), "steps": order["steps"], "waited": run.loaders.seconds, "from": run_from})
        run_from += order["steps"]


def _first(run: Run, begun: float) -> Generator[int, None, int]:
    """Return how many iterations have passed."""
    yield 1
    clock = Clock(run.device)
    run.send(first=time.perf_counter() - begun)
    order = run.receive()
    for _ in range(order["steps"]):
        yield 1
        run.send(passed=1)
    run.send(block={**clock.stop(), "steps": order["steps"], "applied": run.rows()})
    passed: int = order["steps"] + 1
    return passed
