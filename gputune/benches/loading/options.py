"""The DataLoader's other arguments, each against torch's default at one number of workers, timed in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

from gputune.bench_process import Context
from gputune.benches._timing import Arm, Params, against_first, in_turn
from gputune.benches.loading.batches import to_device
from gputune.benches.loading.source import Options, Source
from gputune.benches.loading.stream import Stream, guarded
from gputune.measurement import LEAST_GAIN, LOOKS, Measurement, rounded

Arms = Sequence[tuple[Params, Options]]

EPOCH_STARTS = LOOKS[0]
HOPELESS = 1 + (LEAST_GAIN - 1) / 3
"""Epochs that gain less than this by kept workers in the first pairs are not started again and again."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Whose rows these are."""

    context: Context
    name: str
    block_seconds: float
    step_seconds: float = 0.0

    def row(self, samples: Sequence[float], **params: str | int | float | bool) -> Measurement:
        return Measurement(
            bench=self.name,
            metric="throughput",
            unit="samples/s",
            samples=tuple(rounded(sample) for sample in samples[: LOOKS[-1]]),
            params=params,
            device=self.context.device,
        )


def prefetch(bench: Bench, source: Source, options: Options, seconds: float) -> list[Measurement]:
    """Twice as many batches ahead of the consumer."""
    factors = (options.prefetch_factor, 2 * options.prefetch_factor)
    arms: Arms = [({"prefetch_factor": factor}, replace(options, prefetch_factor=factor)) for factor in factors]
    return _timed(bench, "prefetch", source, arms, seconds)


def threads(bench: Bench, source: Source, options: Options, seconds: float) -> list[Measurement]:
    """The CPUs that the workers leave idle, as threads in each of them."""
    counts = (1, bench.context.facts.cpu.budget // options.workers)
    arms: Arms = [({"threads": count}, replace(options, threads=count)) for count in counts]
    return _timed(bench, "threads", source, arms, seconds)


def transfer(bench: Bench, source: Source, options: Options, seconds: float) -> list[Measurement]:
    """Batches copied to the GPU: at once from pageable memory, behind the scenes from pinned memory."""
    arms: Arms = [({"pin_memory": pin}, replace(options, pin_memory=pin)) for pin in (False, True)]
    return _timed(bench, "transfer", source, arms, seconds)


def _timed(bench: Bench, kind: str, source: Source, options: Arms, seconds: float) -> list[Measurement]:
    deadline = time.monotonic() + seconds
    receive: Any = partial(to_device, device=bench.context.device) if kind == "transfer" else _kept
    streams = [Stream(source, one, receive) for _, one in options]
    try:
        arms = [
            Arm(params=params, run=partial(stream.rate, bench.block_seconds, bench.step_seconds), work=1)
            for (params, _), stream in zip(options, streams, strict=True)
        ]
        for stream in streams:
            stream.open()
        in_turn(against_first(arms), deadline - time.monotonic())
    finally:
        for stream in streams:
            stream.close()
    workers = options[0][1].workers
    return [bench.row(arm.samples, kind=kind, workers=workers, **arm.params) for arm in arms if arm.samples]


def _kept(batch: Any) -> Any:
    return batch


def epochs(bench: Bench, source: Source, options: Options, epoch_seconds: float, seconds: float) -> list[Measurement]:
    """Whole epochs with workers started anew, and kept: of each the start is timed, in an epoch of one batch for each worker,
    and `epoch_seconds`, which an epoch takes without it, are added.
    """
    deadline = time.monotonic() + seconds
    short = replace(source, indices=list(islice(source.stream(), options.workers)), piece=None)
    kept = [False, True]
    loaders = [short.loader(replace(options, persistent_workers=keep), epochs=True) for keep in kept]
    taken: list[list[float]] = [[], []]
    try:
        with guarded(source.patience, seconds):
            _epoch(loaders[1])  # the one that starts the workers which are kept
            for number in range(EPOCH_STARTS):
                for place in (0, 1) if number % 2 else (1, 0):
                    taken[place].append(epoch_seconds + _epoch(loaders[place]))
                hopeless = number == 2 and median(taken[0]) < HOPELESS * median(taken[1])
                if hopeless or time.monotonic() > deadline:
                    break
    finally:
        _end(loaders[1])
    samples = epoch_seconds  # any number of samples would do: the two are compared
    return [
        bench.row(
            [samples / each for each in times],
            kind="epochs",
            workers=options.workers,
            persistent_workers=keep,
            epoch_seconds=round(epoch_seconds, 2),
        )
        for keep, times in zip(kept, taken, strict=True)
    ]


def _epoch(loader: Any) -> float:
    started = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - started


def _end(loader: Any) -> None:
    iterator = getattr(loader, "_iterator", None)
    if iterator is not None:
        iterator._shutdown_workers()
