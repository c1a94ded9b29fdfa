"""What a dataset's samples cost, told by taking a few of them where a DataLoader's worker would: in a forked child.

Taking a sample leaves traces: random numbers are drawn, caches filled, and a file that is opened at its first use would be
shared, with its position, by all workers that are forked later. In a child they are gone with it, and a sample that crashes
or hangs costs no more than an answer. Only map-style datasets can be asked for single samples.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import warnings
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, Literal

Kind = Literal["decoding", "memory", "waiting"]
"""Samples that cost CPU time, that cost next to nothing, and that are waited for."""

MOST_SAMPLES = 16
SECONDS = 0.1
"""No further sample is taken after this long."""
DEADLINE_SECONDS = 5.0
"""After which the child is killed: its first sample may import and open what it needs."""
CHEAP_SECONDS = 1e-4
"""Below this, handing a sample to another process costs about as much as making it."""
COMPUTING = 1 / 3
"""The least share of CPU time in the wall's, below which samples are waited for: a busy machine halves it for any of them."""


def kind_of(dataset: Any) -> Kind | None:
    """The kind of the samples of a map-style dataset; None where none could be taken."""
    size = length(dataset)
    if not size or not hasattr(dataset, "__getitem__") or _is_iterable(dataset):
        return None
    try:
        costs = _ask_child(dataset, size)
    except Exception:  # no child can be had, or it died: what is not known changes nothing
        return None
    return kind(*costs) if costs else None


def length(dataset: Any) -> int | None:
    """How many samples there are; None where the dataset does not tell."""
    try:
        return len(dataset)
    except Exception:  # a user's own __len__, and an IterableDataset has none
        return None


def kind(wall_seconds: float, cpu_seconds: float) -> Kind:
    """What a sample is that takes so long, and so much CPU time. What is ready at once is neither computed nor waited for."""
    if wall_seconds >= CHEAP_SECONDS and cpu_seconds < COMPUTING * wall_seconds:
        return "waiting"
    return "memory" if cpu_seconds < CHEAP_SECONDS else "decoding"


def _is_iterable(dataset: Any) -> bool:
    import torch

    return isinstance(dataset, torch.utils.data.IterableDataset)


def _ask_child(dataset: Any, size: int) -> tuple[float, float] | None:
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(dataset, size, writer), daemon=True)
    with reader, writer, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later, of forking beside threads
        child.start()
        try:
            writer.close()
            return reader.recv() if reader.poll(DEADLINE_SECONDS) else None
        finally:
            child.kill()
            child.join()


def _answer(dataset: Any, size: int, writer: Connection) -> None:
    try:
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # as in a worker; the parent's threads were not forked with it
        writer.send(_costs(dataset, size))
    except Exception:  # the user's own code; the reader sees the pipe's end
        writer.close()


def _costs(dataset: Any, size: int) -> tuple[float, float]:
    """Wall and CPU seconds of a sample, the medians of some from all over the dataset. The first warms up, if there are more."""
    taken: list[tuple[float, float]] = []
    started = time.perf_counter()
    for index in range(0, size, max(1, size // MOST_SAMPLES))[:MOST_SAMPLES]:
        wall, cpu = time.perf_counter(), time.process_time()
        _ = dataset[index]
        taken.append((time.perf_counter() - wall, time.process_time() - cpu))
        if time.perf_counter() - started > SECONDS:
            break
    walls, cpus = zip(*(taken[1:] or taken), strict=True)
    return median(walls), median(cpus)
