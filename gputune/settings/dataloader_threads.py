"""How many threads each DataLoader worker computes with; none leaves it to torch, which gives each worker one.

More of them pay where a dataset wants fewer workers than there are CPUs and its samples are made by torch's operators that run in
parallel. With as many workers as CPUs, more threads only wait for each other. Libraries with threads of their own (OpenCV, MKL below
NumPy) follow their own variables in a worker.

In forked workers it stays at one: OpenMP's threads do not survive a fork, and a worker that asks for some after the training
process has used its own waits for ever.

Source: PyTorch, torch.utils.data's worker loop calls torch.set_num_threads(1); libgomp's behaviour after fork, seen here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import compared, counted, decide, keep, lacking, select
from .dataloader_workers import bench_of
from .dataloader_workers import recommend as recommend_workers

VALUE = int | None
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = (1, 4096)


@dataclass(frozen=True, slots=True)
class WorkerThreads:
    """A `worker_init_fn`: torch computes with this many threads in a DataLoader's worker, where it begins with one; then the
    user's own is called.

    A class of a module, so that a worker that is not forked can unpickle it.
    """

    threads: int
    theirs: Callable[[int], Any] | None = None

    def __call__(self, worker_id: int) -> None:
        import torch

        torch.set_num_threads(self.threads)
        if self.theirs:
            self.theirs(worker_id)


def recommend(facts: Any, measurements: Any) -> Choice:
    workers = recommend_workers(facts, measurements).value
    if not isinstance(workers, int) or not workers:
        return keep(None, "no workers to give threads to")
    if facts.cpu.budget // workers < 2:
        return keep(None, f"{counted(workers, 'worker')} and {counted(facts.cpu.budget, 'CPU')}: one thread for each")
    if not select(measurements, bench_of(measurements), "throughput", kind="threads"):
        return keep(None, "one, torch's own: in forked workers more would wait for ever; not measured in others")
    rows = select(measurements, bench_of(measurements), "throughput", kind="threads")
    single = next((row for row in rows if row.params.get("threads") == 1), None)
    more = next((row for row in rows if row is not single), None)
    comparison = compared(more, single)
    if comparison is None or more is None:
        return keep(None, lacking(more, single))
    count = int(more.params["threads"])
    return decide(comparison, (None, count), f"loading with {count} threads in each worker", more.bench)
