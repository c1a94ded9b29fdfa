"""A measuring run: models are found in the second step; then settings are switched and blocks of steps are timed. Where
the program trains nothing, its calls are the steps, and outputs are compared in this run, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...knobs.compile import graphs
from ..injection import MOST_MODELS, PATIENCE
from ..models import has_images, key
from ..root import Root, found_roots
from ..watch import Watch
from .agreement import Agreement
from .arms import Arms
from .timing import Clock, Trace

if TYPE_CHECKING:
    from .run import Run

TRACES = 2
"""So many traces show whether the GPU works as long for one step as for another."""
MOST_COMPILING = 6
"""So many steps more are let pass where each has compiled something."""


def work(run: Run) -> Iterator[int]:
    """Say what was found, then obey orders."""
    yield 1
    trains = not run.iterations.calls.counts
    watch = Watch(run.device, gradients=trains)
    watch.start()
    for _ in range(PATIENCE):
        yield 1
        if watch.seen:
            break
    watch.stop()
    roots = found_roots(watch, run.iterations.optimizers, run.device)
    arms = Arms(roots if len(roots) <= MOST_MODELS else [])
    arms.watch(run.raised)
    for root in roots:
        root.in_turn, root.failed = True, lambda name, why: run.raised(RuntimeError(f"{name}: {why}"))
    run.send(found={"trains": trains, **_found(roots)})
    yield from _obey(run, arms)


def _obey(run: Run, arms: Arms) -> Iterator[int]:
    while True:
        order = run.receive()
        if order["do"] == "look":
            run.send(obstacles=arms.obstacles(order["candidates"]))
        elif order["do"] == "loader":
            run.send(loader=run.loaders.plain())
        elif order["do"] == "compare":
            yield from _compare(run, arms, order)
        elif order["do"] == "trace":
            yield from _trace(run, order["steps"])
        else:
            yield from _block(run, arms, order)


def _found(roots: list[Root]) -> dict[str, Any]:
    keys = [key(root.model) for root in roots]
    return {
        "models": [[one.class_name, one.digest] for one in keys],
        "families": sorted({root.family for root in roots if root.family}),
        "shapes": [list(shape) for root in roots for shape in root.seen.shapes],
        "images": any(has_images(root.model) for root in roots),
    }


def _compare(run: Run, arms: Arms, order: dict[str, Any]) -> Iterator[int]:
    agreement = Agreement(arms, order["values"], order["explained"])
    agreement.start()
    for _ in range(order["calls"]):
        yield 1
        run.send(passed=1)
    agreement.stop()
    run.send(compared=agreement.plain)


def _block(run: Run, arms: Arms, order: dict[str, Any]) -> Iterator[int]:
    """Switch, let some steps pass (more of them as long as they compile), and time the others."""
    arms.switch(order["values"])
    run.loaders.switch(order.get("workers"))
    made = graphs() if "compile" in order["values"] else 0
    for number in range(order["settle"] + MOST_COMPILING):
        if number >= order["settle"] and ("compile" not in order["values"] or made == graphs()):
            break
        made = graphs() if "compile" in order["values"] else 0
        yield 1
        run.send(passed=1)
    clock = Clock(run.device)
    run.loaders.seconds = 0.0
    yield order["steps"]
    answer = clock.stop()
    answer["waited"] = run.loaders.seconds
    answer["compiled"] = graphs() - made if "compile" in order["values"] else 0
    run.send(block=answer)


def _trace(run: Run, steps: int) -> Iterator[int]:
    found = []
    for _ in range(TRACES):
        trace = Trace(run.device)
        yield steps
        works = trace.stop()
        found.append(works and works / steps)
    run.send(trace=found)
