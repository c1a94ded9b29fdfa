"""The DataLoader of one process: what a profile chose, for this dataset, and for the CPUs and the shared memory here."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gputune import settings
from gputune.facts.gap import Gaps
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.profile import Profile
from gputune.resources import cpus, scheduler
from gputune.resources.sample_kind import kind_of, length
from gputune.resources.temporary import temporary_folder
from gputune.runtime.applied import Applied
from gputune.settings import Value
from gputune.settings._scaling import fitting, scaled
from gputune.settings.dataloader_threads import WorkerThreads

WORKERS, PREFETCH, THREADS = "dataloader_workers", "dataloader_prefetch_factor", "dataloader_threads"

BENCHES = ("dataloader", "dataset")
"""Synthetic samples of each kind, and the user's own."""

SAMPLES = {
    "decoding": "its samples cost CPU time",
    "memory": "its samples cost next to nothing",
    "waiting": "its samples are waited for",
}
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What of a profile's run tells how far its choices hold in another process, and for another dataset."""

    cpu_budget: int | None = None
    """The CPUs of the process that measured; None where not known."""
    rows: tuple[Measurement, ...] = ()

    @classmethod
    def of(cls, profile: Profile) -> Measured:
        rows = tuple(row for row in profile.measurements if row.bench in BENCHES)
        return cls(cpu_budget=profile.fingerprint.cpu_budget, rows=rows)

    @property
    def own_dataset(self) -> bool:
        """Whether the user's own dataset was loaded, so that the choices are for it."""
        return bool(settings.load(WORKERS).bench_of(self.rows) == "dataset")

    @property
    def cpus_bound(self) -> bool:
        """Whether more CPUs would have borne more of the own dataset's workers: not where a step was fed, or where there were so
        many that they must have waited.
        """
        rows = settings.load(WORKERS).curve(self.rows, "dataset")
        chosen = settings.load(WORKERS).recommend(None, self.rows).value
        return not any("step_ms" in row.params for row in rows) and chosen <= 2 * (self.cpu_budget or chosen)

    @property
    def batch_bytes(self) -> int:
        """The largest batch of the user's own dataset; 0 where none was measured."""
        rows = [row for row in self.rows if row.bench == "dataset" and row.metric == "batch_bytes"]
        return int(max((max(row.samples) for row in rows), default=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What there is here for one rank; None where it could not be read."""

    cpus: int | None = None
    shm_bytes: int | None = None
    """Its share of what is free in /dev/shm, through which workers hand over their batches."""
    temporary: bool = True
    """Whether there is a folder for temporary files, without which workers hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The arguments that depend on the dataset and on this process. None is torch's default."""

    workers: int = 0
    prefetch: int | None = None
    threads: int | None = None
    """That a worker computes with."""
    scales: bool = True
    """Whether more CPUs would bear more workers: not where samples are waited for, or a consumer's step was fed."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Setting to why it is not as it was chosen."""

    def noting(self, setting: str, note: str, **changes: Any) -> Load:
        """With these changes and the reason for them, after any that there is."""
        earlier = f"{self.notes[setting]}; " if setting in self.notes else ""
        return replace(self, notes={**self.notes, setting: earlier + note}, **changes)


def room(host: Host) -> Room:
    """What is there now: a few files of the machine's."""
    gaps, granted = Gaps(), scheduler.read(host)
    space = gaps.read("memory.shm", lambda: host.space_bytes("/dev/shm"))
    return Room(
        cpus=gaps.read("cpu", lambda: cpus.rank_budget(host, granted)),
        shm_bytes=space[1] // granted.local_ranks if space else None,
        temporary=temporary_folder(),
    )


def for_dataset(load: Load, measured: Measured, dataset: Any) -> Load:
    """The workers for this dataset: none for a single sample, the chosen ones for the dataset that was measured, and else those
    that were best for synthetic samples of its kind, where both are known.
    """
    size = length(dataset)
    if size is not None and size < 2:
        return (
            load.noting(WORKERS, f"a dataset of {size} has nothing to load ahead", workers=0) if load.workers else load
        )
    if measured.own_dataset:
        return load if measured.cpus_bound else replace(load, scales=False)
    of_kind = settings.load(WORKERS).of_kind
    best = {kind: of_kind(measured.rows, kind) for kind in SAMPLES}
    kind = kind_of(dataset) if set(best.values()) - {None} else None
    workers = best[kind] if kind else None
    if kind is None or workers is None:
        return load
    load = replace(load, scales=kind != "waiting")
    if workers == load.workers:
        return load
    return load.noting(WORKERS, f"{SAMPLES[kind]}, for which {workers} measured best", workers=workers)


def fitted(load: Load, measured: Measured, there: Room) -> Load:
    """The same within what there is here: workers in proportion to the CPUs, batches in flight that shared memory holds (where
    the size of a batch was measured), and no more threads than CPUs in all workers together. None where they would hang.
    """
    if load.workers and not there.temporary:
        return load.noting(WORKERS, "workers need a folder for temporary files (TMPDIR), and there is none", workers=0)
    workers = scaled(load.workers, measured.cpu_budget, there.cpus) if load.scales else load.workers
    if workers != load.workers:
        why = f"{load.workers} measured with {measured.cpu_budget} CPUs, {there.cpus} here"
        load = load.noting(WORKERS, why, workers=workers)
    return _within_cpus(_within_shm(load, measured.batch_bytes, there.shm_bytes), there.cpus)


def _within_shm(load: Load, batch_bytes: int, shm_bytes: int | None) -> Load:
    if shm_bytes is None:
        return load
    workers, prefetch = fitting(load.workers, load.prefetch, batch_bytes, shm_bytes)
    why = f"batches of {batch_bytes / MIB:.3g} MiB, and /dev/shm has {shm_bytes / MIB:.4g} MiB free for them"
    if workers != load.workers:
        load = load.noting(WORKERS, why, workers=workers)
    return load.noting(PREFETCH, why, prefetch=prefetch) if prefetch != load.prefetch else load


def _within_cpus(load: Load, cpus: int | None) -> Load:
    if not load.threads or not load.workers or cpus is None:
        return load
    threads = min(load.threads, max(1, cpus // load.workers))
    if threads == load.threads:
        return load
    why = f"{load.threads} measured, and {load.workers} workers share {cpus} CPUs here"
    return load.noting(THREADS, why, threads=threads)


def arguments(load: Load, *, pin_memory: bool, persistent_workers: bool) -> dict[str, Any]:
    """Arguments for torch's DataLoader. What belongs to workers is there only with workers: torch refuses it without."""
    made: dict[str, Any] = {"num_workers": load.workers, "pin_memory": pin_memory}
    if load.workers:
        made["persistent_workers"] = persistent_workers
        made["prefetch_factor"] = load.prefetch
        if load.threads and load.threads > 1 and multiprocessing.get_start_method() != "fork":
            made["worker_init_fn"] = WorkerThreads(load.threads)
    return made


def told(rows: Sequence[Applied], load: Load) -> tuple[Applied, ...]:
    """The rows, with what became of the settings that differ from what was chosen."""
    values: dict[str, Value] = {WORKERS: load.workers, PREFETCH: load.prefetch, THREADS: load.threads}
    return tuple(
        replace(row, after=values[row.setting], why=f"{row.why}; {load.notes[row.setting]}")
        if row.setting in load.notes
        else row
        for row in rows
    )
