"""How fast a DataLoader delivers synthetic samples, by number of workers and by its other options.

Three kinds of samples: `decoding` costs CPU time, as reading and resizing an image does; `memory` is a slice of
something already in memory, such as tokens; `waiting` is waited for, as an object store's answer is. For each kind the
most workers that are worth trying, half and a quarter of them are timed in turn with none; those that fall behind are
given up soon. (One look at each is not enough to choose by: on 16 CPUs it scatters by a quarter.) The thorough budget
measures the other options too.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from gputune.bench_process import Context
from gputune.benches._threads import free_cpus, own_threads
from gputune.benches._user_code import UserCodeError
from gputune.benches.loading import options as options_of
from gputune.benches.loading.options import Bench
from gputune.benches.loading.samples import TRANSFER_SHAPE, Decoding, Images, Tokens, Waiting
from gputune.benches.loading.source import NO_FOLDER, Options, Source
from gputune.benches.loading.stream import end_workers
from gputune.benches.loading.worker_curve import Curve, Trial
from gputune.benches.loading.worker_curve import measure as measure_curve
from gputune.benches.loading.worker_search import per_cpu
from gputune.facts import Facts
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.measurement import Measurement
from gputune.resources.cpus import temporary_folder
from gputune.settings._loading_rows import LoadingParams
from gputune.settings._scaling import PREFETCH
from gputune.settings.dataloader_workers import curve, preferred

SECONDS = {"cuda": {"standard": 12.5, "thorough": 60}, "cpu": {"standard": 10, "thorough": 60}}
LEAST_SECONDS = {"cuda": 11.5}
"""With less, 16 CPUs of a machine that has just started (where 112 workers took three seconds until all of them loaded)
could not take four rounds of every kind.
"""
RANK = 4
OF_THE_HOST = True

END_SHARE = 0.1
"""The part of the seconds that is kept back for the last turn, and its workers, to end."""

OVERTIME_SHARE = 0.15
"""The part of the seconds by which the last kind may take longer where its samples so far say nothing. (Beside eight
busy loops on 16 CPUs one of five probes took five rounds, and one of these was disturbed.)
"""

SHARES = {"memory": 0.08, "waiting": 0.17, "decoding": 0.22, "prefetch": 0.17, "transfer": 0.14, "epochs": 0.22}
"""Shares of the seconds, in the order in which they are taken; outside the thorough budget the kinds share all of them.
The shortest comes first, since what it leaves is for the others, and of the kinds the one that scatters most comes
last, so that its rounds take no time from another. Whole epochs take what all others leave, and have time for eight
pairs if these leave nothing: a pair of them, of which one starts 40 workers, takes 1.4 s on an H200 machine.
"""

KINDS = {"memory": Tokens, "waiting": Waiting, "decoding": Decoding}

BATCH = 8
SAMPLE_BYTES = 3 * 96 * 96
"""The largest sample of the three kinds."""
WAITING_FACTOR = 4
"""The most workers tried for each CPU with samples that are waited for; `per_cpu` has the limit for decoding."""
MOST_WORKERS = {"decoding": 64, "memory": 4, "waiting": 48}
"""Slices of memory take longer on their way from a worker than it takes to make them, and one process takes about 2000
batches a second, which 35 workers that wait bring it. (In sweeps on 16 CPUs of four idle machines 48 such workers were
the fastest, and 64 lost up to 7 %.)
"""
BLOCK_SECONDS = {"decoding": 0.1, "memory": 0.05, "waiting": 0.1}
EPOCH_SECONDS = 10.0
"""The length of an epoch, against which the start of the workers is compared."""
TRANSFER_BATCH = 16
TRANSFER_WORKERS = 4


def needs(facts: Facts, device: str) -> str | None:
    in_flight = PREFETCH * _alive(facts) * BATCH * SAMPLE_BYTES
    free, needed = facts.memory.shm_free_bytes, 2 * in_flight
    if free is None or free >= needed:
        return None
    have = f"/dev/shm has {free >> 20} MiB free and the bench needs {needed >> 20}"
    return f"{have}: give the container more (--shm-size)"


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
    shares = _shares(context)
    deadline = time.monotonic() + (1 - END_SHARE) * context.seconds

    def seconds(name: str) -> float:
        """A part's share of the time that is left."""
        left, own, all_left = deadline - time.monotonic(), shares[name], sum(shares.values())
        del shares[name]
        return max(0.0, left) * own / all_left

    bench = Bench(context=context, name="dataloader", block_seconds=BLOCK_SECONDS["decoding"])
    rows: list[Measurement] = []
    try:
        with own_threads(free_cpus(context.facts.cpu, Host())):
            for kind in KINDS:
                context.say(f"samples: {kind}")
                share = seconds(kind)
                later = deadline - time.monotonic() - share
                at_most = share + max(later / 2, OVERTIME_SHARE * context.seconds)
                for one in _of_kind(bench, kind, share, at_most):
                    yield one
                    rows += [one] if isinstance(one, Measurement) else []
            best = preferred(curve(rows, "decoding"))
            if context.budget == "thorough" and best and best.workers:
                yield from _other_options(bench, best.workers, seconds)
    finally:
        end_workers()


def _shares(context: Context) -> dict[str, float]:
    """The shares of what is measured."""
    measured = [*KINDS] if context.budget != "thorough" else [*SHARES]
    return {name: SHARES[name] for name in measured if name != "transfer" or _transfers(context)}


def _of_kind(bench: Bench, kind: str, seconds: float, at_most: float) -> Iterator[Measurement | Gap]:
    fact = f"bench.dataloader.{kind}"
    try:
        measured = _curve(bench, kind, seconds, at_most)
    except UserCodeError as error:
        yield Gap(fact=fact, reason=str(error), cause=error.cause)
        return
    for count, samples in sorted(measured.all_rates.items()):
        if all(samples):
            yield bench.row(samples, LoadingParams(kind=kind, workers=count))
    yield from measured.gaps(fact)


def _curve(bench: Bench, kind: str, seconds: float, at_most: float) -> Curve:
    facts = bench.context.facts
    trial = Trial(
        source=source_of(kind),
        counts=_counts(facts, kind),
        alive=_alive(facts),
        seconds=seconds,
        at_most=at_most,
        block_seconds=BLOCK_SECONDS[kind],
    )
    return measure_curve(trial)


def _other_options(bench: Bench, count: int, seconds: Callable[[str], float]) -> Iterator[Measurement]:
    context, source, options = bench.context, _source(Decoding(), BATCH), Options(workers=count)
    context.say("prefetch_factor")
    yield from options_of.prefetch(bench, source, options, seconds("prefetch"))
    if _transfers(context):
        context.say("pin_memory")
        images = _source(Images(), TRANSFER_BATCH)
        workers = Options(workers=min(TRANSFER_WORKERS, context.facts.cpu.budget))
        yield from options_of.transfer(bench, images, workers, seconds("transfer"))
    context.say("persistent_workers")
    yield from options_of.epochs(bench, source, options, EPOCH_SECONDS, seconds("epochs"))


def source_of(kind: str) -> Source:
    """The synthetic samples of one kind."""
    return _source(KINDS[kind](), BATCH)


def _source(dataset: Any, batch: int) -> Source:
    from torch.utils import data

    indices = data.BatchSampler(data.SequentialSampler(dataset), batch, True)
    return Source(dataset=dataset, batch_size=batch, indices=indices)


def _transfers(context: Context) -> bool:
    """Whether there is a GPU to copy to, and room for the batches."""
    free = context.facts.memory.shm_free_bytes
    batch = 4 * TRANSFER_BATCH * TRANSFER_SHAPE[0] * TRANSFER_SHAPE[1] * TRANSFER_SHAPE[2]
    return context.cuda and (free is None or free > 2 * 2 * PREFETCH * TRANSFER_WORKERS * batch)
