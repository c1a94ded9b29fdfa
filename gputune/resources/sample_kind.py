"""The cost of a dataset's samples, measured by loading a few where a DataLoader's worker would: in a forked child.

Loading a sample has side effects: it draws random numbers, fills caches, and a file opened on first use would be
shared, including its position, by all workers forked later. In a child these effects end with it, and a sample that
crashes or hangs costs only the answer. Files that the program reads keep their positions. Only map-style datasets can
be asked for single samples.
"""

import gc
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Literal, TypeVar, cast

from .sample_sharing import has_printed, held_with_others, without_channels
from .sample_state import ITERATOR, SHARED_FILE, State, open_files, own_positions

Kind = Literal["decoding", "memory", "waiting"]
"""Samples that take CPU time, that take almost no time, and that are mostly waited for (a disk, a network)."""

Answer = TypeVar("Answer")

PRINTS = "its samples print, and workers would print in another order"
NOT_PASSED = "its batches cannot be passed from one process to another"
MOST_SAMPLES = 16
SECONDS = 0.1
"""No further sample is loaded after this time."""
DEADLINE_SECONDS = 5.0
"""The child is killed after this time, which leaves room for the imports of a first sample."""
CHEAP_SECONDS = 1e-4
"""Below this, passing a sample to another process costs about as much as loading it."""
COMPUTING = 1 / 3
"""Samples whose share of CPU in wall time is lower are mostly waited for. A busy machine may halve the share of any."""


def kind_of(dataset: Any) -> Kind | None:
    """The kind of a map-style dataset's samples; None where none could be loaded."""
    import torch

    size, iterable = length(dataset), isinstance(dataset, torch.utils.data.IterableDataset)
    if not size or iterable or not hasattr(dataset, "__getitem__"):
        return None
    costs = _ask_child(_costs, dataset, size)
    return kind(*costs) if costs else None


def draws_random_numbers(dataset: Any) -> bool | None:
    """Whether loading samples drew random numbers of Python, NumPy or torch; None where none could be loaded."""
    size = length(dataset)
    if not size or not hasattr(dataset, "__getitem__"):
        return None
    return _ask_child(_draws, dataset, size)


def why_not_in_workers(dataset: Any, batch: Callable[[int], Any], *makers: Any) -> str | None:
    """Why workers cannot load this dataset as the program does: None if `batch`, which makes the batch of a sample,
    can in a forked process, nothing of the dataset and of the functions `makers` moves meanwhile, and the batch can be
    passed to another process.

    No sample is loaded where that would ask another process, or change what several processes share.
    Each worker opens what is opened on first use. So only what moves after the first sample counts, except for files
    that were open before: their positions are shared.
    """

    def tried(dataset: Any, size: int) -> str:
        begun, files = State(dataset, *makers), open_files()
        if begun.holds_iterator():
            return ITERATOR
        positions, started = begun.positions(), time.perf_counter()
        batches = [batch(0)]
        if size > 2 and time.perf_counter() - started < SECONDS:
            batches.append(batch(size - 1))
        state = State(dataset, *makers)
        if state.holds_iterator():
            return ITERATOR
        batches.append(batch(min(1, size - 1)))
        if has_printed():
            return PRINTS
        now = open_files()
        if begun.positions() != positions or any(now.get(one, at) != at for one, at in files.items()):
            return SHARED_FILE
        return state.moved() or ("" if all(_passes(one) for one in batches) else NOT_PASSED)

    if reason := held_with_others(dataset, *makers):
        return reason
    why = _ask_child(tried, dataset, length(dataset) or 1)
    return "a forked process could not load its first sample" if why is None else why or None


def _passes(batch: Any) -> bool:
    """Whether a batch reaches another process as it is: a gradient would not come back through it. Tensors are not
    copied for that.
    """
    import io
    from multiprocessing.reduction import ForkingPickler

    import torch.multiprocessing  # which says how to pickle what is torch's

    passes = True

    class Passing(ForkingPickler):
        def reducer_override(self, one: Any) -> Any:
            nonlocal passes
            if not isinstance(one, torch.Tensor):
                return NotImplemented
            passes &= not one.requires_grad
            return int, ()

    try:
        Passing(io.BytesIO()).dump(batch)
    except Exception:  # whatever the program's classes raise
        return False
    return passes


def length(dataset: Any) -> int | None:
    """The number of samples; None where the dataset does not say."""
    try:
        return len(dataset)
    except Exception:  # a user's own __len__, and an IterableDataset has none
        return None


def kind(wall_seconds: float, cpu_seconds: float) -> Kind:
    """The kind of a sample by its wall and CPU time. One that is ready at once is neither computed nor waited for."""
    if wall_seconds >= CHEAP_SECONDS and cpu_seconds < COMPUTING * wall_seconds:
        return "waiting"
    return "memory" if cpu_seconds < CHEAP_SECONDS else "decoding"


def _ask_child(question: Callable[[Any, int], Answer], dataset: Any, size: int) -> Answer | None:
    """What a forked child answers; None if no child can or may be started, or it does not answer in time, raises or
    dies.
    """
    if multiprocessing.current_process().daemon or held_with_others(dataset):
        return None
    context = multiprocessing.get_context("fork")
    try:
        reader, writer = context.Pipe(duplex=False)
        child = context.Process(target=_answer, args=(question, dataset, size, writer), daemon=True)
        with reader, writer, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later, of forking beside threads
            child.start()
            try:
                writer.close()
                return cast(Answer, reader.recv()) if reader.poll(DEADLINE_SECONDS) else None
            finally:
                child.kill()
                child.join()
    except EOFError:
        return None
    except OSError as error:
        if error.errno is None:  # a TimeoutError of the program's, from a signal handler
            raise
        return None


def _answer(question: Callable[[Any, int], Answer], dataset: Any, size: int, writer: Connection) -> None:
    try:
        gc.disable()  # it would close files of the program's, and the numbers of these would be given to others
        own_positions()
        without_channels(writer.fileno())
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # as in a worker; the parent's threads were not forked with it
        writer.send(question(dataset, size))
    except Exception:  # the user's own code; the reader sees the pipe's end
        writer.close()


def _costs(dataset: Any, size: int) -> tuple[float, float]:
    """Median wall and CPU seconds of samples spread over the dataset, except for the first, which warms up."""
    from statistics import median  # slow to import, and applying a profile takes none

    costs: list[tuple[float, float]] = []
    started = time.perf_counter()
    for index in range(0, size, max(1, size // MOST_SAMPLES))[:MOST_SAMPLES]:
        wall, cpu = time.perf_counter(), time.process_time()
        _ = dataset[index]
        costs.append((time.perf_counter() - wall, time.process_time() - cpu))
        if time.perf_counter() - started > SECONDS:
            break
    walls, cpus = zip(*(costs[1:] or costs), strict=True)
    return median(walls), median(cpus)


def _draws(dataset: Any, size: int) -> bool:
    _ = dataset[0]  # a first use may import what the states are read from
    before = _states()
    _costs(dataset, size)
    return _states() != before


def _states() -> list[str]:
    import random

    states = [repr(random.getstate())]
    if "numpy" in sys.modules:
        numpys = sys.modules["numpy"].random.get_state()
        states.append(repr([part.tolist() if hasattr(part, "tolist") else part for part in numpys]))
    if "torch" in sys.modules:
        states.append(repr(sys.modules["torch"].get_rng_state().tolist()))
    return states
