"""How fast a DataLoader delivers synthetic samples, by number of workers and by its other options.

Samples of three kinds: `decoding` costs CPU time, as reading and resizing an image does; `memory` is a slice of what is there
already, as of tokens; `waiting` is waited for, as an object store's answer is. For each the number of workers is searched
(doubling, and closing in on the bend), and the contenders are timed in turn with none. The thorough budget asks about the other
options too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gputune.bench_process import Context
from gputune.benches import torch_missing
from gputune.benches.loading import options as options_of
from gputune.benches.loading.options import Bench
from gputune.benches.loading.samples import TRANSFER_SHAPE, Decoding, Images, Tokens, Waiting
from gputune.benches.loading.source import NO_FOLDER, Options, Source, own_threads
from gputune.benches.loading.stream import end_workers
from gputune.benches.loading.worker_curve import Trial
from gputune.benches.loading.worker_curve import measure as measure_curve
from gputune.benches.loading.worker_search import per_cpu
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.measurement import Measurement
from gputune.resources.temporary import temporary_folder
from gputune.settings._scaling import PREFETCH
from gputune.settings.dataloader_workers import fewest, in_turn

SECONDS = {
    "cuda": {"quick": 0, "standard": 6.5, "thorough": 60},
    "cpu": {"quick": 0, "standard": 10, "thorough": 60},
}
RANK = 7
OF_THE_HOST = True

SHARES = {"decoding": 0.24, "memory": 0.08, "waiting": 0.15, "prefetch": 0.2, "epochs": 0.16, "transfer": 0.17}
"""Of the seconds; the first three alone outside the thorough budget."""

KINDS = {"decoding": Decoding, "memory": Tokens, "waiting": Waiting}

BATCH = 8
SAMPLE_BYTES = 3 * 96 * 96
"""The largest sample's; none of the three kinds' is more."""
WAITING_FACTOR = 4
"""Workers for each CPU that are tried at most for samples that are waited for; `per_cpu` has those for the others."""
MOST_WORKERS = 64
BLOCK_SECONDS = {"quick": 0.05, "standard": 0.05, "thorough": 0.1}
EPOCH_SECONDS = 10.0
"""Of the epoch beside which the start of the workers is held."""
TRANSFER_BATCH = 16
TRANSFER_WORKERS = 4


def needs(facts: Facts, device: str) -> str | None:
    free, needed = facts.memory.shm_free_bytes, _shm_bytes(facts)
    if free is not None and free < needed:
        return f"/dev/shm has {free >> 20} MiB free and the bench needs {needed >> 20}: give the container more (--shm-size)"
    return torch_missing(facts)


def _most(facts: Facts, kind: str) -> int:
    return min(MOST_WORKERS, facts.cpu.budget * (WAITING_FACTOR if kind == "waiting" else per_cpu(facts.cpu)))


def _alive(facts: Facts) -> int:
    """Workers at once: those of the largest loader and of all that are half, a quarter, ... of it."""
    return 2 * _most(facts, "waiting")


def _shm_bytes(facts: Facts) -> int:
    """The most that all loaders have in flight at once, twice over."""
    return 2 * PREFETCH * _alive(facts) * BATCH * SAMPLE_BYTES


def measure(context: Context) -> Iterator[Measurement | Gap]:
    if not temporary_folder():
        yield Gap(fact="bench.dataloader", reason=NO_FOLDER)
        return
    thorough = context.budget == "thorough"
    asked = SHARES if thorough else {kind: SHARES[kind] for kind in KINDS}
    seconds = {name: share / sum(asked.values()) * context.seconds for name, share in asked.items()}
    bench = Bench(context=context, name="dataloader", block_seconds=BLOCK_SECONDS[context.budget])
    count = 0
    try:
        with own_threads(context.facts.cpu.budget):
            for kind, dataset in KINDS.items():
                context.say(f"samples: {kind}")
                rows = _curve(bench, kind, dataset, seconds[kind])
                yield from rows
                if kind == "decoding" and rows:
                    count = int(fewest(in_turn(rows)).params["workers"])
            if thorough and count:
                yield from _other_options(bench, count, seconds)
    finally:
        end_workers()


def _curve(bench: Bench, kind: str, dataset: Callable[[], Any], seconds: float) -> list[Measurement]:
    facts = bench.context.facts
    trial = Trial(
        source=_source(dataset(), BATCH),
        options=lambda workers: Options(workers=workers),
        limit=_most(facts, kind),
        alive=_alive(facts),
        seconds=seconds,
        block_seconds=bench.block_seconds,
    )
    curve = measure_curve(trial)
    found = {**curve.rough, **curve.rates}
    return [bench.row(samples, kind=kind, workers=count) for count, samples in sorted(found.items()) if all(samples)]


def _other_options(bench: Bench, count: int, seconds: dict[str, float]) -> Iterator[Measurement]:
    context, source, options = bench.context, _source(Decoding(), BATCH), Options(workers=count)
    context.say("prefetch_factor")
    yield from options_of.prefetch(bench, source, options, seconds["prefetch"])
    context.say("persistent_workers")
    yield from options_of.epochs(bench, source, options, EPOCH_SECONDS, seconds["epochs"])
    if context.cuda and _transfer_fits(context.facts):
        context.say("pin_memory")
        images = _source(Images(), TRANSFER_BATCH)
        workers = Options(workers=min(TRANSFER_WORKERS, context.facts.cpu.budget))
        yield from options_of.transfer(bench, images, workers, seconds["transfer"])


def _source(dataset: Any, batch: int) -> Source:
    from torch.utils import data

    indices = data.BatchSampler(data.SequentialSampler(dataset), batch, True)
    return Source(dataset=dataset, batch_size=batch, indices=indices)


def _transfer_fits(facts: Facts) -> bool:
    free = facts.memory.shm_free_bytes
    batch = 4 * TRANSFER_BATCH * TRANSFER_SHAPE[0] * TRANSFER_SHAPE[1] * TRANSFER_SHAPE[2]
    return free is None or free > 2 * 2 * PREFETCH * TRANSFER_WORKERS * batch
