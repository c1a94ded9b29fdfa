"""How a DataLoader's measured arguments change with the CPUs and the shared memory of a process."""

from ._loading_rows import WORKERS

PREFETCH = 2
"""torch's `prefetch_factor` where none is given. Source: PyTorch, "torch.utils.data"."""

HELD = 2
"""Batches beyond those that workers prepare: the one that the consumer holds, and the one that replaces it."""


def scaled(workers: int, profiled: int | None, available: int | None) -> int:
    """The number of workers, chosen with `profiled` CPUs, for `available` CPUs; unchanged where either is unknown.

    With fewer CPUs the workers are fewer in proportion, rounded down, or each would get less of a CPU than it was
    measured with. At least one stays, so that loading goes on beside the training. With more CPUs there are more
    workers only where as many as there were CPUs had been chosen, which shows that the CPUs were the limit.
    """
    most = WORKERS[1]
    if workers <= 0 or not profiled or not available or available == profiled:
        return min(workers, most)
    if available > profiled > workers:
        return min(workers, most)
    return min(max(1, workers * available // profiled), most)


def fitting(workers: int, prefetch: int | None, batch_bytes: int, shm_bytes: int) -> tuple[int, int | None]:
    """The most workers and the largest prefetch_factor, at or below these, whose batches fit into `shm_bytes`.

    (workers x prefetch + 2) batches exist at once: those in flight, and `HELD`. The prefetch_factor is lowered first,
    down to 1, since a worker that is left out takes a CPU with it; then the number of workers. (0, None) where not even
    one worker's batches fit, and without workers. A `prefetch` of None means torch's default.
    """
    if workers <= 0:
        return 0, None
    if batch_bytes <= 0:
        return workers, prefetch
    in_flight = max(0, shm_bytes // batch_bytes - HELD)
    ahead = PREFETCH if prefetch is None else prefetch
    if workers * ahead <= in_flight:
        return workers, prefetch
    if workers <= in_flight:
        return workers, in_flight // workers
    return (in_flight, 1) if in_flight else (0, None)
