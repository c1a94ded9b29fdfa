"""How fast a DataLoader delivers synthetic samples, by number of workers and by its other options.

Samples of two kinds: `decode` costs CPU time, as reading and resizing an image does, and `cheap` costs next to nothing, as a slice
of tokens does. Loaders live for the whole bench and are read in turn; before a block the queue of finished batches is
drained, so that what is timed is what the workers deliver and not what they had ready.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from gputune.benches import Context, torch_missing
from gputune.benches._timing import Arm, Params, against_first, interleave, measurement
from gputune.facts import Facts
from gputune.measurement import Measurement
from gputune.settings.dataloader_workers import fewest

SECONDS = {
    "cuda": {"quick": 0, "standard": 6.5, "thorough": 60},
    "cpu": {"quick": 0, "standard": 10, "thorough": 60},
}
RANK = 7

SHARES = {"curve": 0.36, "cheap": 0.07, "prefetch": 0.2, "epochs": 0.24, "transfer": 0.13}
"""Of the seconds; the first two alone outside the thorough budget."""

BATCH = 8
BLOCK_SECONDS = {"quick": 0.05, "standard": 0.05, "thorough": 0.1}
PREFETCH = 2
SAMPLE_BYTES = 3 * 96 * 96
TRANSFER_SHAPE = (3, 224, 224)
TRANSFER_BATCH = 16
TRANSFER_WORKERS = 4
"""More of them would fill the seconds with draining their queues."""


def needs(facts: Facts, device: str) -> str | None:
    free, needed = facts.memory.shm_free_bytes, _shm_bytes(facts)
    if free is not None and free < needed:
        return f"/dev/shm has {free >> 20} MiB free and the bench needs {needed >> 20}: give the container more (--shm-size)"
    return torch_missing(facts)


def _shm_bytes(facts: Facts) -> int:
    """The most that all loaders have in flight at once, twice over."""
    return 2 * PREFETCH * 2 * sum(_counts(facts)) * BATCH * SAMPLE_BYTES


def _counts(facts: Facts) -> list[int]:
    """0, 1 and doubling up to the CPU budget: samples that cost CPU time gain nothing from more workers than CPUs."""
    budget = facts.cpu.budget
    return sorted({0, 1, budget, *(2**power for power in range(1, 12) if 2**power < budget)})


def _tried(context: Context) -> list[int]:
    """All counts in the thorough budget; fewer where there is time for few, but always none and as many as there are CPUs."""
    counts = _counts(context.facts)
    return counts if context.budget == "thorough" else [0, *counts[-3:]] if len(counts) > 4 else counts


class Decoding:
    """A map-style dataset whose samples cost a few milliseconds of one CPU: scaling a synthetic 512x512 image down."""

    def __init__(self, length: int) -> None:
        import torch

        self.length = length
        self.image = torch.randint(0, 256, (3, 512, 512), dtype=torch.uint8)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        import torch

        image = self.image.roll(index % 512, dims=2).float()[None]
        small = torch.nn.functional.interpolate(image, size=(96, 96), mode="bicubic", antialias=True)
        return small[0].clamp_(0, 255).to(torch.uint8)


class Tokens:
    """A map-style dataset whose samples are slices of memory."""

    def __init__(self, length: int) -> None:
        import torch

        self.length = length
        self.tokens = torch.randint(0, 50257, (1 << 20,), dtype=torch.int32)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        start = (index * 977) % (self.tokens.numel() - 512)
        return self.tokens[start : start + 512]


class Images:
    """A map-style dataset of ready FP32 images, large enough that copying them to a GPU takes time."""

    def __init__(self, length: int) -> None:
        import torch

        self.length = length
        self.image = torch.randn(TRANSFER_SHAPE)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.image


@dataclass(frozen=True, kw_only=True)
class Options:
    """The DataLoader arguments under test."""

    workers: int
    prefetch_factor: int = PREFETCH
    pin_memory: bool = False
    persistent_workers: bool = True
    batch: int = BATCH

    def loader(self, dataset: Any) -> Any:
        import torch

        more: dict[str, Any] = {}
        if self.workers:
            more = {"prefetch_factor": self.prefetch_factor, "persistent_workers": self.persistent_workers}
        return torch.utils.data.DataLoader(
            dataset,
            batch_size=self.batch,
            num_workers=self.workers,
            pin_memory=self.pin_memory,
            **more,
        )


def measure(context: Context) -> Iterator[Measurement]:
    thorough = context.budget == "thorough"
    shares = SHARES if thorough else {name: SHARES[name] / (SHARES["curve"] + SHARES["cheap"]) for name in SHARES}
    seconds = {name: share * context.seconds for name, share in shares.items()}
    context.say("samples that cost CPU time")
    curve = _timed(
        context, [_stream("decode", Decoding, Options(workers=n)) for n in _tried(context)], seconds["curve"]
    )
    if not curve:
        return
    yield from curve
    count = int(fewest(curve).params["workers"])
    if count == 0:
        return
    context.say("samples that cost nothing")
    yield from _timed(context, [_stream("cheap", Tokens, Options(workers=n)) for n in (0, count)], seconds["cheap"])
    if thorough:
        yield from _other_options(context, count, curve, seconds)


def _other_options(
    context: Context, count: int, curve: list[Measurement], seconds: dict[str, float]
) -> Iterator[Measurement]:
    context.say("prefetch_factor")
    ahead = [Options(workers=count, prefetch_factor=factor) for factor in (PREFETCH, 2 * PREFETCH)]
    yield from _timed(context, [_stream("prefetch", Decoding, options) for options in ahead], seconds["prefetch"])
    context.say("persistent_workers")
    kept = [Options(workers=count, persistent_workers=keep) for keep in (False, True)]
    yield from _timed(context, [_epochs(options, curve) for options in kept], seconds["epochs"])
    if context.cuda and _transfer_fits(context.facts):
        context.say("pin_memory")
        workers = min(TRANSFER_WORKERS, context.facts.cpu.budget)
        pinned = [Options(workers=workers, pin_memory=pin, batch=TRANSFER_BATCH) for pin in (False, True)]
        yield from _timed(context, [_transfer(context, options) for options in pinned], seconds["transfer"])


def _timed(context: Context, loads: list[_Load], seconds: float) -> list[Measurement]:
    """Time the loads in turn by the wall clock, and end their worker processes whatever happens."""
    wall = Context(device="cpu", facts=context.facts, seconds=seconds, budget=context.budget)
    try:
        for load in loads:
            load.arm.before()  # once all queues have been full, every worker has started
        row = partial(measurement, context, "dataloader", "samples/s")
        return interleave(
            wall, against_first([load.arm for load in loads]), seconds, row, BLOCK_SECONDS[context.budget]
        )
    finally:
        for load in loads:
            load.close()


@dataclass(kw_only=True)
class _Load:
    arm: Arm
    close: Callable[[], None]


def _stream(kind: str, dataset: Callable[[int], Any], options: Options) -> _Load:
    """Batches from one endless epoch. The first that a block would find ready are drained before it."""
    batches = iter(options.loader(dataset(1 << 30)))
    ready = options.workers * options.prefetch_factor

    def drain() -> None:
        for _ in range(ready):
            next(batches)

    def settle() -> None:
        # The workers now fill their queues again, which must not disturb the next arm.
        if options.workers:
            time.sleep(min(0.1, options.workers * options.prefetch_factor * arm.seconds))

    params: Params = {"kind": kind, "workers": options.workers, "prefetch_factor": options.prefetch_factor}
    arm = Arm(params=params, run=lambda: next(batches), work=options.batch, before=drain, after=settle)
    return _Load(arm=arm, close=getattr(batches, "_shutdown_workers", lambda: None))


def _epochs(options: Options, curve: list[Measurement]) -> _Load:
    """Whole epochs, with the start of the workers in each where they are not kept. An epoch takes about 0.15 s."""
    rate = fewest(curve).median
    length = max(options.workers, round(0.15 * rate / BATCH)) * BATCH
    loader = options.loader(Decoding(length))

    def epoch() -> None:
        for _ in loader:
            pass

    params: Params = {
        "kind": "epochs",
        "workers": options.workers,
        "persistent_workers": options.persistent_workers,
        "epoch_seconds": round(length / rate, 2),
    }

    def close() -> None:
        iterator = getattr(loader, "_iterator", None)
        if iterator is not None:
            iterator._shutdown_workers()

    return _Load(arm=Arm(params=params, run=epoch, work=length), close=close)


def _transfer(context: Context, options: Options) -> _Load:
    """Large ready batches, each copied to the GPU: at once from pageable memory, behind the scenes from pinned memory."""
    load = _stream("transfer", Images, options)
    fetch = load.arm.run

    def run() -> None:
        fetch().to(context.device, non_blocking=True)

    load.arm.params = {"kind": "transfer", "workers": options.workers, "pin_memory": options.pin_memory}
    load.arm.run = run
    return load


def _transfer_fits(facts: Facts) -> bool:
    free = facts.memory.shm_free_bytes
    batch = 4 * TRANSFER_BATCH * TRANSFER_SHAPE[0] * TRANSFER_SHAPE[1] * TRANSFER_SHAPE[2]
    return free is None or free > 2 * 2 * PREFETCH * TRANSFER_WORKERS * batch
