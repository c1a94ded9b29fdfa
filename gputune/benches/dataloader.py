"""How fast a DataLoader delivers synthetic samples, by number of workers.

Three kinds of samples: `decoding` costs CPU time, as reading and resizing an image does; `memory` is a slice of
something already in memory, such as tokens; `waiting` is waited for, as an object store's answer is. For each kind the
most workers that are worth trying, half and a quarter of them are timed in turn with none; those that fall behind are
given up soon.
"""

import time
from collections.abc import Iterator
from typing import Any

from gputune.advice._evidence import LoadingParams
from gputune.bench_process import Context
from gputune.benches._timing import free_cpus, own_threads, shared_out
from gputune.benches._user_code import UserCodeError
from gputune.benches.loading.source import NO_FOLDER, Source
from gputune.benches.loading.stream import end_workers
from gputune.benches.loading.worker_curve import WorkerTrial, row
from gputune.benches.loading.worker_curve import measure as measure_curve
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.knobs.dataloader_prefetch_factor import PREFETCH
from gputune.measurement import Measurement
from gputune.resources.room import temporary_folder
from gputune.search.workers import per_cpu

SECONDS = {"cuda": {"standard": 12.5, "thorough": 28}, "cpu": {"standard": 10, "thorough": 28}}
LEAST_SECONDS = {"cuda": 11.5}
"""With less, 16 CPUs of a machine that has just started could not take four rounds of every kind."""
RANK = 4
OF_THE_HOST = True

END_SHARE = 0.1
"""The part of the seconds that is kept back for the last turn, and its workers, to end."""
OVERTIME_SHARE = 0.15
"""The part of the seconds by which the last kind may take longer where its samples so far say nothing."""
SHARES = {"memory": 0.17, "waiting": 0.36, "decoding": 0.47}
"""Shares of the seconds, in order: what the shortest leaves is for the others, and what scatters most comes last."""
BATCH = 8
SAMPLE_BYTES = 3 * 96 * 96
"""The largest sample of the three kinds."""
WAITING_FACTOR = 4
"""The most workers tried for each CPU with samples that are waited for; `per_cpu` has the limit for decoding."""
MOST_WORKERS = {"decoding": 64, "memory": 4, "waiting": 48}
"""Slices of memory take longer on their way from a worker than to make, and one process takes about 2000 batches a
second, which 35 workers that wait bring it."""
BLOCK_SECONDS = {"decoding": 0.1, "memory": 0.05, "waiting": 0.1}
WAIT_SECONDS = 0.002


class Synthetic:
    """A map-style dataset, longer than any bench reads."""

    def __len__(self) -> int:
        return 1 << 30


class Decoding(Synthetic):
    """Samples that cost a few milliseconds of one CPU: scaling a synthetic 512x512 image down."""

    def __init__(self) -> None:
        import torch

        self.image = torch.randint(0, 256, (3, 512, 512), dtype=torch.uint8)

    def __getitem__(self, index: int) -> Any:
        import torch

        image = self.image.roll(index % 512, dims=2).float()[None]
        small = torch.nn.functional.interpolate(image, size=(96, 96), mode="bicubic", antialias=True)
        return small[0].clamp_(0, 255).to(torch.uint8)


class Tokens(Synthetic):
    def __init__(self) -> None:
        import torch

        self.tokens = torch.randint(0, 50257, (1 << 20,), dtype=torch.int32)

    def __getitem__(self, index: int) -> Any:
        start = (index * 977) % (self.tokens.numel() - 512)
        return self.tokens[start : start + 512]


class Waiting(Tokens):
    def __getitem__(self, index: int) -> Any:
        time.sleep(WAIT_SECONDS)
        return super().__getitem__(index)


KINDS = {"memory": Tokens, "waiting": Waiting, "decoding": Decoding}


def needs(facts: Facts, device: str) -> str | None:
    in_flight = PREFETCH * _alive(facts) * BATCH * SAMPLE_BYTES
    free, needed = facts.memory.shm_free_bytes, 2 * in_flight
    have = f"/dev/shm has {(free or 0) >> 20} MiB free and the bench needs {needed >> 20}"
    return f"{have}: give the container more (--shm-size)" if free is not None and free < needed else None


def _most(facts: Facts, kind: str) -> int:
    factor = WAITING_FACTOR if kind == "waiting" else per_cpu(facts.cpu)
    return min(MOST_WORKERS[kind], int(facts.cpu.budget * factor))


def _counts(facts: Facts, kind: str) -> tuple[int, ...]:
    most = _most(facts, kind)
    return tuple(dict.fromkeys((0, *(max(1, most // part) for part in (4, 2, 1)))))


def _alive(facts: Facts) -> int:
    """The most workers at once: the largest loader's, and those of loaders with half, a quarter, ... as many."""
    return 2 * max(_most(facts, kind) for kind in KINDS)


def measure(context: Context) -> Iterator[Measurement | Gap]:
    if not temporary_folder():
        yield Gap(fact="bench.dataloader", reason=NO_FOLDER)
        return
    deadline = time.monotonic() + (1 - END_SHARE) * context.seconds
    try:
        with own_threads(free_cpus(context.facts.cpu, Host())):
            for kind, seconds in shared_out(list(SHARES), deadline - time.monotonic(), SHARES.__getitem__):
                context.say(f"samples: {kind}")
                left = max(0.0, deadline - time.monotonic())
                at_most = seconds + max((left - seconds) / 2, OVERTIME_SHARE * context.seconds)
                yield from _of_kind(context, kind, seconds, at_most)
    finally:
        end_workers()


def _of_kind(context: Context, kind: str, seconds: float, at_most: float) -> Iterator[Measurement | Gap]:
    facts, fact = context.facts, f"bench.dataloader.{kind}"
    trial = WorkerTrial(
        source=source_of(kind),
        counts=_counts(facts, kind),
        alive=_alive(facts),
        seconds=seconds,
        at_most=at_most,
        block_seconds=BLOCK_SECONDS[kind],
    )
    try:
        measured = measure_curve(trial)
    except UserCodeError as error:
        yield Gap(fact=fact, reason=str(error), cause=error.cause)
        return
    for count, samples in sorted(measured.all_rates.items()):
        if all(samples):
            yield row(context, "dataloader", samples, LoadingParams(kind=kind, workers=count))
    yield from measured.gaps(fact)


def source_of(kind: str) -> Source:
    from torch.utils import data

    dataset: Any = KINDS[kind]()
    indices = data.BatchSampler(data.SequentialSampler(dataset), BATCH, True)
    return Source(dataset=dataset, batch_size=BATCH, indices=indices)
