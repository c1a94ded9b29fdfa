"""The user's own dataset or DataLoader as a source, and a first look at what it yields: how long a batch takes, and its
bytes in shared memory on the way from a worker.
"""

import ctypes
import hashlib
import io
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from gputune.benches._user_code import UserCodeError, call, words
from gputune.benches.loading.source import Options, Source
from gputune.benches.loading.stream import OutOfPatience, Stream, guarded, within

EMPTY = "the dataset is empty: its length is 0"
DEFAULT_BATCH = 32
HUGE = 10_000_000
"""With so many samples no permutation is made, which takes seconds and 60 bytes a sample. Some may then come twice."""
SAMPLED_BATCHES = 8
PAGE = 4096
LOOK_SECONDS = 0.4
PIECE_SECONDS = 0.02
"""Batches are cut so that a worker makes a piece in about this time, for more samples of the curve."""
RECEIVED_SECONDS = 0.005
"""Pieces arrive no more often than this from all workers together: receiving one takes 1 to 2 ms, as a batch does."""


def source_of(path: str, batch_size: int | None, patience: float) -> Source:
    """Call what `path` names; the dataset or DataLoader that it returns, as a source. Raises UserCodeError."""
    try:
        with within(patience):
            source = _source(call(path), path, batch_size)
    except OutOfPatience:
        raise UserCodeError(f"{path} returned nothing within {patience:.0f} s") from None
    except UserCodeError:
        raise
    except Exception as error:  # its own __len__, or its sampler's
        raise UserCodeError(words(error)) from None
    source.patience = patience
    return source


def _source(loadable: Any, path: str, batch_size: int | None) -> Source:
    from torch.utils import data

    if isinstance(loadable, data.DataLoader):
        return _source_of_loader(loadable, batch_size)
    size, more = batch_size or DEFAULT_BATCH, {"collate_fn": data.default_collate}
    if isinstance(loadable, data.IterableDataset):
        length = _length(loadable)
        return Source(dataset=loadable, batch_size=size, epoch_batches=length and -(-length // size), more=more)
    if not (hasattr(loadable, "__getitem__") and hasattr(loadable, "__len__")) or isinstance(
        loadable, str | bytes | dict
    ):
        what = "not a Dataset with a length, an IterableDataset or a DataLoader"
        raise UserCodeError(f"{path} returned {type(loadable).__name__!r}, {what}")
    length = len(loadable)
    if not length:
        raise UserCodeError(EMPTY)
    shuffled = data.RandomSampler(loadable, replacement=length > HUGE)  # as training reads it
    indices = data.BatchSampler(shuffled, size, False)
    return Source(dataset=loadable, batch_size=size, indices=indices, epoch_batches=len(indices), more=more)


def _source_of_loader(loader: Any, batch_size: int | None) -> Source:
    from torch.utils import data

    own = _batch_size(loader)
    if batch_size and own != batch_size:
        has = f"has its own, {own}" if own else "makes no batches"
        raise UserCodeError(f"--batch-size {batch_size}: the DataLoader {has}; leave the option out")
    more = {
        name: value
        for name in ("collate_fn", "worker_init_fn", "multiprocessing_context", "generator")
        if (value := getattr(loader, name, None)) is not None
    }
    length = _length(loader)
    if isinstance(loader.dataset, data.IterableDataset):
        more["drop_last"] = loader.drop_last
        return Source(dataset=loader.dataset, batch_size=own, epoch_batches=length, more=more)
    if length == 0:
        raise UserCodeError(EMPTY)
    indices = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
    return Source(dataset=loader.dataset, batch_size=own, indices=indices, epoch_batches=length, more=more)


def _batch_size(loader: Any) -> int | None:
    """A loader's batch size: the mean of its first batches where a sampler not torch's own decides it."""
    from torch.utils import data

    if loader.batch_sampler is None or type(loader.batch_sampler) is data.BatchSampler:
        own: int | None = loader.batch_size
        return own
    first = [len(batch) for batch in islice(loader.batch_sampler, SAMPLED_BATCHES)]
    return max(1, round(sum(first) / len(first))) if first else 1


def _length(loadable: Any) -> int | None:
    with suppress(Exception):
        return len(loadable)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    batch_bytes: int
    """The size of one whole batch in shared memory."""
    batch_seconds: float
    """How long one worker takes for a whole batch."""
    busy: float
    """The share of that time in which it computes; the rest is waiting."""
    worker_bytes: int
    """Memory that a worker has to itself."""
    same_samples: bool = False
    """Whether two workers yield the same samples, each of them the whole of an IterableDataset."""


def look(source: Source) -> Look:
    """Read a whole batch and some pieces in a worker, which sends only descriptions: nothing that the dataset does can
    harm this process, and shared memory may be small. Raises UserCodeError.
    """
    import psutil

    size = source.batch_size or 1
    part = max(1, size // 8)
    looked = replace(
        source,
        indices=_Looked(source.indices, part) if source.indices is not None else None,
        more={**source.more, "collate_fn": Described(source.more.get("collate_fn", _as_is))},
    )
    workers = 2 if source.indices is None else 1
    stream = Stream(looked, Options(workers=workers, prefetch_factor=1))
    try:
        with guarded(source.patience, 0):
            first = [stream.take() for _ in range(2 * workers if workers > 1 else 1)]
            process = psutil.Process(stream.pids()[0])
            stream.take()  # begun together with the first
            pieces, busy = _pieces(stream, process)
            own = process.memory_full_info().uss
    except UserCodeError:
        stream.close(failed=True)
        raise
    stream.close()
    digests = [batch.digest for batch in first]  # from both workers in turn
    per_batch = median(pieces) * (size / part if source.indices is not None and source.batch_size else workers)
    return Look(
        batch_bytes=max(batch.shm_bytes for batch in first),
        batch_seconds=per_batch,
        busy=min(1.0, busy),
        worker_bytes=own,
        same_samples=workers == 2 and len(set(digests)) > 1 and digests[::2] == digests[1::2],
    )


def _pieces(stream: Stream, process: Any) -> tuple[list[float], float]:
    """The seconds that each piece took, and the share of the time in which the worker could have a CPU and computed."""
    before, started = _cpu(process), time.perf_counter()
    seconds: list[float] = []
    while not seconds or time.perf_counter() - started < LOOK_SECONDS:
        since = time.perf_counter()
        stream.take()
        seconds.append(time.perf_counter() - since)
    after, taken = _cpu(process), time.perf_counter() - started
    used, delayed = after[0] - before[0], after[1] - before[1]
    # The kernel counts in hundredths of a second: too short a look says nothing about waiting.
    return seconds, used / max(used, taken - delayed) if taken > LOOK_SECONDS / 2 else 1.0


def _cpu(process: Any) -> tuple[float, float]:
    """The seconds in which a process computed, and those in which it was ready but had no CPU.
    Source: Linux, Documentation/scheduler/sched-stats.rst, /proc/PID/schedstat.
    """
    times, delayed = process.cpu_times(), 0.0
    with suppress(OSError, ValueError, IndexError):  # a kernel without CONFIG_SCHED_INFO
        delayed = int(Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    return float(times.user + times.system), delayed


def _as_is(samples: Any) -> Any:
    return samples


class _Looked:
    """An epoch's indices: first one whole batch, then pieces of the next ones."""

    def __init__(self, indices: Iterable[Any], part: int) -> None:
        self.indices, self.part = indices, part

    def __iter__(self) -> Iterator[Any]:
        whole = True
        for batch in self.indices:
            if whole or not isinstance(batch, list):
                yield batch
            else:
                yield from (batch[start : start + self.part] for start in range(0, len(batch), self.part))
            whole = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Stands for a batch on the way from a worker."""

    shm_bytes: int
    """The size of its tensors' storages, each of which a worker puts into whole pages of /dev/shm."""
    digest: str


class Described:
    """A collate function that makes the batch with the user's function, and returns only its description."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self.collate = collate

    def __call__(self, samples: Any) -> Description:
        from torch.utils import data

        if self.collate is not data.default_collate:  # it may ask which worker it is in
            return describe(self.collate(samples))
        # It avoids shared memory without workers, and /dev/shm may be too small for one batch.
        before, data.get_worker_info = data.get_worker_info, lambda: None
        try:
            return describe(self.collate(samples))
        finally:
            data.get_worker_info = before


def describe(batch: Any) -> Description:
    """Describe a batch by pickling it, as a worker does. Raises TypeError where it cannot be pickled."""
    import torch

    storages: dict[int, int] = {}
    digest = hashlib.blake2b(digest_size=16)

    class Pickler(pickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
                return NotImplemented
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            if storage.device.type == "cpu" and storage.data_ptr():
                digest.update(ctypes.string_at(storage.data_ptr(), storage.nbytes()))
            return (int, ())

    text = io.BytesIO()
    try:
        Pickler(text).dump(batch)
    except Exception as error:
        raise TypeError(f"a batch cannot be sent from a worker to the training process: {error}") from error
    digest.update(text.getvalue())
    pages = sum(-(-size // PAGE) * PAGE for size in storages.values())
    return Description(shm_bytes=pages, digest=digest.hexdigest())
