"""DataLoader arguments: a profile's choices adapted to this dataset and to this process's CPUs and shared memory."""

import copy
import errno
import itertools
import multiprocessing
import os
import resource
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ..knobs import Value
from ..knobs._signals import is_for_the_program
from ..knobs.dataloader_prefetch_factor import AHEAD, HELD, PREFETCH
from ..knobs.dataloader_workers import LIMITS, WORKERS
from ..resources.room import Room
from ..resources.sample_kind import Kind, kind_of, length

_FIELDS = {WORKERS: "workers", AHEAD: "prefetch"}

SAMPLES: Mapping[Kind, str] = {
    "decoding": "its samples cost CPU time",
    "memory": "its samples cost next to nothing",
    "waiting": "its samples are waited for",
}
MIB = 1 << 20
SHM = "/dev/shm"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLoading:
    """The parts of a profile that decide how its choices carry over to another process or dataset."""

    cpu_budget: int | None = None
    """The CPUs of the process that measured; None where unknown."""
    workers_by_kind: Mapping[Kind, int] = field(default_factory=dict)
    """The best number of workers for each kind of synthetic samples that has a choice of its own."""
    own_dataset: bool = False
    """Whether the choices were measured with the user's own dataset."""
    cpus_bound: bool = True
    """Whether the CPUs limited loading of the user's own dataset, so that more would support more workers."""
    batch_bytes: int = 0
    """The size of the largest batch of the user's own dataset; 0 where none was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The arguments that depend on the dataset and on this process. None is torch's default."""

    workers: int = 0
    prefetch: int | None = None
    scales: bool = True
    """Whether workers follow the number of CPUs: not if they mostly wait, or already kept a training step fed."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By setting, why its value differs from the profile's choice."""

    @classmethod
    def of(cls, workers: Value, prefetch: Value) -> Self:
        """The load of two choices; what is no whole number is torch's default."""
        return cls(
            workers=workers if isinstance(workers, int) else 0, prefetch=prefetch if isinstance(prefetch, int) else None
        )

    def changed(self, setting: str, value: int | None, why: str) -> Self:
        """A copy with another value of a setting, and with the reason in its notes; the same where nothing changes."""
        if value == self.values[setting]:
            return self
        notes = {**self.notes, setting: (*self.notes.get(setting, ()), why)}
        changes: dict[str, Any] = {_FIELDS[setting]: value, "notes": notes}
        return replace(self, **changes)

    @property
    def values(self) -> dict[str, int | None]:
        return {setting: getattr(self, field) for setting, field in _FIELDS.items()}


def for_dataset(load: Load, measured: MeasuredLoading, dataset: Any) -> Load:
    """The load for this dataset: as measured with it, else as was best for synthetic samples of its kind, if known."""
    size = length(dataset)
    if size is not None and size < 2:
        return load.changed(WORKERS, 0, f"nothing to load ahead in a dataset of length {size}")
    if measured.own_dataset:
        return load if measured.cpus_bound else replace(load, scales=False)
    kind = kind_of(dataset) if measured.workers_by_kind else None
    workers = measured.workers_by_kind.get(kind) if kind else None
    if kind is None or workers is None:
        return load
    return replace(load, scales=kind != "waiting").changed(
        WORKERS, workers, f"{SAMPLES[kind]}; {workers} workers measured best for such samples"
    )


def fitted(load: Load, measured: MeasuredLoading, room: Room) -> Load:
    """The load limited to this process's CPUs, and to its shared memory if the size of a batch was measured."""
    if not room.temporary:
        return load.changed(WORKERS, 0, "workers need a folder for temporary files (TMPDIR), and none is available")
    if load.scales:
        workers = scaled(load.workers, measured.cpu_budget, room.cpus)
        load = load.changed(
            WORKERS,
            workers,
            f"{load.workers} workers were measured with {measured.cpu_budget} CPUs, and this process has {room.cpus}",
        )
    if room.shm_bytes is not None:
        workers, prefetch = fitting(load.workers, load.prefetch, measured.batch_bytes, room.shm_bytes)
        share = f"this process's share of /dev/shm is {room.shm_bytes / MIB:.4g} MiB"
        why = f"a batch takes {measured.batch_bytes / MIB:.3g} MiB, and {share}"
        load = load.changed(WORKERS, workers, why).changed(AHEAD, prefetch, why)
    return load


def scaled(workers: int, profiled: int | None, available: int | None) -> int:
    """The number of workers, chosen with `profiled` CPUs, for `available` CPUs; unchanged where either is unknown.

    With fewer CPUs the workers are fewer in proportion, rounded down, or each would get less of a CPU than it was
    measured with. At least one stays, so that loading goes on beside the training. With more CPUs there are more
    workers only where as many as there were CPUs had been chosen, which shows that the CPUs were the limit.
    """
    most = LIMITS[1]
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
    if workers * (PREFETCH if prefetch is None else prefetch) <= in_flight:
        return workers, prefetch
    if workers <= in_flight:
        return workers, in_flight // workers
    return (in_flight, 1) if in_flight else (0, None)


def start_method() -> str:
    """How this process starts its children. Asking multiprocessing itself would settle it for the program."""
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def arguments(load: Load, *, pin_memory: bool) -> dict[str, Any]:
    """Arguments for torch's DataLoader, which refuses `prefetch_factor` where there are no workers."""
    given: dict[str, Any] = {"num_workers": load.workers, "pin_memory": pin_memory}
    return {**given, "prefetch_factor": load.prefetch} if load.workers else given


def made_with(loader: Any, given: dict[str, Any], make: Callable[[Any], Any]) -> Any:
    """The iterator that `make` makes of a loader with other attributes, without torch's warning of more workers
    than CPUs, which is what was measured to be best.
    """
    own, changed = vars(loader), {**given, "check_worker_number_rationality": lambda: None}
    before = {name: own[name] for name in changed if name in own}
    own.update(changed)
    try:
        return make(loader)
    finally:
        for name in changed:
            own.pop(name, None)
        own.update(before)


def asked_late(make: Callable[[Any], Any], loader: Any) -> Any:
    """An iterator whose workers are told their first samples when it is asked for its first batch, and whose sampler
    ends when the batches do, where torch's RandomSampler draws once more, or as the last batch is made, if that has
    fewer samples. Until then other iterators, and the program, may draw from the generator that its sampler draws from.

    Batches are copied out of shared memory while little of it, or few file descriptors, are left: each tensor of a
    worker's holds both until it is freed, and a program may keep all.
    """
    from torch.utils.data import dataloader

    kind = dataloader._MultiProcessingDataLoaderIter
    if not loader.num_workers or not hasattr(kind, "_try_put_index") or not hasattr(kind, "_next_data"):
        return make(loader)
    sampler, nothing = loader._index_sampler, ()
    made = made_with(loader, {"sampler" if loader.batch_sampler is None else "batch_sampler": nothing}, make)
    if type(made) is not kind:
        return make(loader)
    made._index_sampler, indices, late, begun = sampler, iter(sampler), weakref.ref(made), False
    ahead = max(0, len(sampler) - bool(getattr(innermost_sampler(loader), "generator", None)))

    def next_data() -> Any:
        nonlocal begun
        iterator: Any = late()
        if not begun:
            begun = True
            iterator._sampler_iter = itertools.islice(indices, ahead)
            for _ in range(iterator._prefetch_factor * iterator._num_workers):
                iterator._try_put_index()
        if iterator._rcvd_idx == ahead < len(sampler):
            iterator._sampler_iter = itertools.islice(indices, 1)
            iterator._try_put_index()
        try:
            batch = kind._next_data(iterator)
            return batch if iterator._pin_memory or not _is_little_left() else _copied(batch)
        except StopIteration:
            next(indices, None)
            raise

    vars(made)["_next_data"] = next_data
    return made


def innermost_sampler(loader: Any) -> Any:
    """What tells a loader the order of its samples."""
    from torch.utils.data import BatchSampler

    sampler = loader._index_sampler
    while type(sampler) is BatchSampler:
        sampler = sampler.sampler
    return sampler


def _copied(batch: Any) -> Any:
    try:
        return copy.deepcopy(batch)
    except Exception as error:  # whatever the program's classes raise
        if is_for_the_program(error):
            raise
        return batch


def _is_little_left() -> bool:
    """Whether half of the file descriptors that this process may have, or of /dev/shm, is taken."""
    try:
        lowest = os.open(SHM, os.O_PATH)
        os.close(lowest)
        shared = os.statvfs(SHM)
    except OSError as error:
        return error.errno == errno.EMFILE
    # A new descriptor has the lowest number that is free.
    return 0 < resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 2 * lowest or 2 * shared.f_bavail < shared.f_blocks
