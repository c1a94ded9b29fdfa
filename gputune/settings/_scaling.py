"""What a DataLoader's measured arguments become in a process with other CPUs, and where shared memory is short. Pure arithmetic."""

from __future__ import annotations

from .dataloader_workers import LIMITS

PREFETCH = 2
"""What torch takes for a `prefetch_factor` of None with workers. Source: PyTorch, "torch.utils.data"."""

HELD = 2
"""Batches beyond those that workers prepare: the one that the consumer holds, and the one that replaces it."""


def scaled(workers: int, profiled: int | None, here: int | None) -> int:
    """Workers that were chosen with `profiled` CPUs, for a process that has `here`; unchanged where either is unknown.

    With fewer CPUs they are fewer in proportion, rounded down: each would get less of a CPU than it was measured with. One
    at least stays, so that loading goes on beside the training. With more CPUs they are more only where as many as there were
    CPUs had been chosen, so that the CPUs were the limit: fewer than that were enough, or more would not have paid.
    """
    most = LIMITS[1]
    if workers <= 0 or not profiled or not here or here == profiled:
        return min(workers, most)
    if here > profiled > workers:
        return min(workers, most)
    return min(max(1, workers * here // profiled), most)


def fitting(workers: int, prefetch: int | None, batch_bytes: int, shm_bytes: int) -> tuple[int, int | None]:
    """The largest workers and prefetch_factor, at or below these, whose batches fit shared memory of `shm_bytes`.

    (workers x prefetch + 2) batches are there at once: those in flight, the one that the consumer holds and the one that
    replaces it. Prefetching gives way first, down to 1, since a worker that is left out takes a CPU with it; then the
    workers do. (0, None) where not even one worker's fit, and without workers. A `prefetch` of None is torch's own.
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
