"""How many threads each DataLoader worker computes with; `null` leaves it to torch, which gives each worker one.

More of them pay where a dataset wants fewer workers than there are CPUs and torch's parallel operators make its
samples. With as many workers as CPUs, more threads only wait for each other. Libraries with threads of their own
(OpenCV, MKL below NumPy) follow their own variables in a worker.

In forked workers it stays at one: OpenMP's threads do not survive a fork, and a worker that asks for some after the
training process has used its own waits for ever.

Source: PyTorch, torch.utils.data's worker loop calls torch.set_num_threads(1); libgomp after a fork, seen here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import Choice, Facts, Measurements, Numerics, Phase
from ._evidence import choose, counted, decide_between
from ._loading_rows import THREADS, loading_rows
from .dataloader_workers import bench_of, chosen_workers

VALUE = int | None
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = THREADS


@dataclass(frozen=True, slots=True)
class WorkerThreads:
    """A `worker_init_fn` that sets torch's number of threads in a DataLoader's worker, which begins with one, and then
    calls the user's own function.

    A class at module level, so that a worker that is not forked can unpickle it.
    """

    threads: int
    users: Callable[[int], Any] | None = None

    def __call__(self, worker_id: int) -> None:
        import torch

        torch.set_num_threads(self.threads)
        if self.users:
            self.users(worker_id)


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    workers, bench = chosen_workers(facts, measurements), bench_of(measurements)
    if not workers:
        return choose(None, "no workers to give threads to")
    if facts.cpu.budget // workers < 2:
        return choose(None, f"{counted(workers, 'worker')} and {counted(facts.cpu.budget, 'CPU')}: one thread for each")
    rows = {params.threads or 1: [row] for params, row in loading_rows(measurements, bench, "threads").items()}
    if not rows:
        return choose(None, "one, torch's own: in forked workers more would wait for ever; not measured in others")
    count = max(rows)
    more = rows[count] if count > 1 else []
    what = f"loading with {count} threads in each worker"
    return decide_between(more, rows.get(1, []), (None, count), what, bench)
