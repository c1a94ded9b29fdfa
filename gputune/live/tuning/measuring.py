"""A measuring run: models are found in the second step; then settings are switched and blocks of steps are timed. Where
the program trains nothing, its calls are the steps, and outputs are compared in this run, too.
"""

from collections.abc import Iterator
from dataclasses import replace

from ...knobs._compiler import graphs
from .. import orders
from ..finding import ModelFinder
from ..injection import MOST_MODELS
from ..installer import Installer
from ..models import has_images, key, layers_of
from ..root import Root, found_roots
from .agreement import Agreement
from .run import Run
from .timing import Clock, Trace

TRACES = 2
"""So many traces show whether the GPU works as long for one step as for another."""
MOST_COMPILING = 6
"""So many steps more are let pass where each has compiled something."""


def work(run: Run) -> Iterator[int]:
    """Say what was found, then obey orders."""
    yield 1
    trains = not run.iterations.are_calls
    finder = ModelFinder(run.device, gradients=trains)
    finder.start()
    yield 1
    while not finder.has_looked():
        yield 1
    roots = found_roots(finder, run.iterations.optimizers)
    installer = Installer(roots if len(roots) <= MOST_MODELS else [])
    installer.watch(run.raised)
    for root in roots:
        root.in_turn, root.failed = True, lambda name, why: run.raised(RuntimeError(f"{name}: {why}"))
    run.send(_found(roots, trains))
    yield from _obey(run, installer)


def _obey(run: Run, installer: Installer) -> Iterator[int]:
    while True:
        match run.receive():
            case orders.FindObstacles(candidates=candidates):
                rows = installer.obstacles(candidates)
                run.send(orders.Obstacles(reasons={name: row.why for name, row in rows.items()}))
            case orders.DescribeLoader():
                run.send(run.loaders.described())
            case orders.CompareOutputs() as order:
                yield from _compare(run, installer, order)
            case orders.TraceSteps(steps=steps):
                yield from _trace(run, steps)
            case orders.TimeBlock() as order:
                yield from _block(run, installer, order)


def _found(roots: list[Root], trains: bool) -> orders.Found:
    return orders.Found(
        trains=trains,
        models=tuple(replace(key(root.model), layers=layers_of(root.model)) for root in roots),
        families=tuple(sorted({root.family for root in roots if root.family})),
        shapes=tuple(shape for root in roots for shape in root.seen.shapes),
        images=any(has_images(root.model) for root in roots),
    )


def _compare(run: Run, installer: Installer, order: orders.CompareOutputs) -> Iterator[int]:
    agreement = Agreement(installer, order.values, order.explained)
    agreement.start()
    for _ in range(order.calls):
        yield 1
        run.send(orders.Passed())
    agreement.stop()
    run.send(agreement.found)


def _block(run: Run, installer: Installer, order: orders.TimeBlock) -> Iterator[int]:
    """Switch, let some steps pass (more of them as long as they compile), and time the others."""
    compiles = "compile" in order.values
    installer.switch(order.values)
    run.loaders.switch(order.workers)
    made = graphs() if compiles else 0
    for number in range(order.settle + MOST_COMPILING):
        if number >= order.settle and (not compiles or made == graphs()):
            break
        made = graphs() if compiles else 0
        yield 1
        run.send(orders.Passed())
    clock = Clock(run.device)
    run.loaders.seconds = 0.0
    yield order.steps
    timed = clock.stop()
    run.send(replace(timed, waited=run.loaders.seconds, compiled=graphs() - made if compiles else 0))


def _trace(run: Run, steps: int) -> Iterator[int]:
    found = []
    for _ in range(TRACES):
        trace = Trace(run.device)
        yield steps
        works = trace.stop()
        found.append(works and works / steps)
    run.send(orders.StepsTraced(seconds=tuple(found)))
