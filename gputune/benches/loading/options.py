"""The DataLoader's other arguments, each timed in turn with torch's default at one number of workers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from statistics import median
from typing import Any

from gputune.bench_process import Context
from gputune.benches._timing import Arm, Metric, in_turn
from gputune.benches.loading.batches import to_device
from gputune.benches.loading.source import Options, Source
from gputune.benches.loading.stream import Stream, guarded
from gputune.measurement import LEAST_GAIN, LOOKS, Measurement
from gputune.rounds import against_first
from gputune.settings._loading_rows import LoadingParams

Variants = Sequence[tuple[LoadingParams, Options]]

EPOCH_STARTS = LOOKS[0]
HOPELESS = 1 + (LEAST_GAIN - 1) / 3
"""When keeping workers gains less than this in the first pairs, no more epochs are started."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The bench that the rows belong to, and the length of its blocks."""

    context: Context
    name: str
    block_seconds: float
    step_seconds: float = 0.0

    def row(self, samples: Sequence[float], params: LoadingParams) -> Measurement:
        return Metric(self.name, "samples/s").row(self.context, samples[: LOOKS[-1]], params.params)


def prefetch(bench: Bench, source: Source, options: Options, seconds: float) -> list[Measurement]:
    """Twice as many batches ahead of the consumer."""
    once = options.prefetch_factor
    return _timed(bench, source, _variants(options, "prefetch", "prefetch_factor", once, 2 * once), seconds)


def threads(bench: Bench, source: Source, options: Options, seconds: float) -> list[Measurement]:
    """The CPUs that the workers leave idle, as threads in each of them."""
    most = bench.context.facts.cpu.budget // options.workers
    return _timed(bench, source, _variants(options, "threads", "threads", 1, most), seconds)


def transfer(bench: Bench, source: Source, options: Options, seconds: float) -> list[Measurement]:
    """Batches copied to the GPU: synchronously from pageable memory, asynchronously from pinned memory."""
    variants = _variants(options, "transfer", "pin_memory", False, True)
    return _timed(bench, source, variants, seconds, partial(to_device, device=bench.context.device))


def _variants(options: Options, kind: str, name: str, *values: Any) -> Variants:
    """The options with each value of the one of that name, and the parameters of its row."""
    params = LoadingParams(kind=kind, workers=options.workers)
    return [(replace(params, **{name: value}), replace(options, **{name: value})) for value in values]


def _timed(
    bench: Bench, source: Source, variants: Variants, seconds: float, receive: Callable[[Any], Any] | None = None
) -> list[Measurement]:
    deadline = time.monotonic() + seconds
    streams = [Stream(source, options, receive) for _, options in variants]
    try:
        arms = [
            Arm(params=params.params, run=partial(stream.rate, bench.block_seconds, bench.step_seconds), work=1)
            for (params, _), stream in zip(variants, streams, strict=True)
        ]
        for stream in streams:
            stream.open()
        in_turn(against_first(arms), deadline - time.monotonic())
    finally:
        for stream in streams:
            stream.close()
    return [bench.row(arm.samples, params) for arm, (params, _) in zip(arms, variants, strict=True) if arm.samples]


def epochs(bench: Bench, source: Source, options: Options, epoch_seconds: float, seconds: float) -> list[Measurement]:
    """Whole epochs with workers started anew, and with workers kept. Only the start is timed, by an epoch of one batch
    for each worker, and `epoch_seconds`, what an epoch takes without it, are added.
    """
    deadline = time.monotonic() + seconds
    short = replace(source, indices=list(islice(source.stream, options.workers)), piece=None)
    kept = [False, True]
    loaders = [short.loader(replace(options, persistent_workers=keep), epochs=True) for keep in kept]
    taken: list[list[float]] = [[], []]
    try:
        with guarded(source.patience, seconds):
            _epoch(loaders[1])  # starts the workers that are kept
            for number in range(EPOCH_STARTS):
                for place in (0, 1) if number % 2 else (1, 0):
                    taken[place].append(epoch_seconds + _epoch(loaders[place]))
                hopeless = number == 2 and median(taken[0]) < HOPELESS * median(taken[1])
                if hopeless or time.monotonic() > deadline:
                    break
    finally:
        if loaders[1]._iterator is not None:
            loaders[1]._iterator._shutdown_workers()
    params = LoadingParams(kind="epochs", workers=options.workers, epoch_seconds=round(epoch_seconds, 2))
    return [  # epochs of any number of samples would do, since they are only compared with each other
        bench.row([epoch_seconds / each for each in times], replace(params, persistent_workers=keep))
        for keep, times in zip(kept, taken, strict=True)
    ]


def _epoch(loader: Any) -> float:
    started = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - started
