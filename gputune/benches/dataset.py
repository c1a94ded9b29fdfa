"""How fast the user's own dataset is loaded, by number of workers.

The callable named with `--dataset` is called in a bench process, and its dataset is first read in a DataLoader's
worker, so that one that raises, hangs or is killed costs nothing but its own measurement. Then the number of workers is
searched (doubling, then closing in on the bend), and the contenders are timed in turn with torch's default of none.
With `--step-ms` the consumer sleeps for that long after each batch, as a training step would take. Batches that take
long are cut into pieces, the smaller the fewer workers there may be. Nothing is tried whose batches in flight /dev/shm
could not hold.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from gputune.advice._evidence import LoadingParams
from gputune.bench_process import Context
from gputune.benches._timing import free_cpus, own_threads
from gputune.benches._user_code import UserCodeError
from gputune.benches.loading.source import Options, Source
from gputune.benches.loading.stream import end_workers
from gputune.benches.loading.user_dataset import PIECE_SECONDS, RECEIVED_SECONDS, Described, Look, look, source_of
from gputune.benches.loading.worker_curve import WorkerTrial, row
from gputune.benches.loading.worker_curve import measure as measure_curve
from gputune.facts.gap import Gap
from gputune.host import Host
from gputune.knobs.dataloader_prefetch_factor import HELD, PREFETCH, SHARE
from gputune.measurement import Measurement
from gputune.search.workers import per_cpu

SECONDS = {"cuda": {"quick": 16, "standard": 16, "thorough": 60}, "cpu": {"quick": 16, "standard": 16, "thorough": 60}}
RANK = 0
OF_THE_HOST = True
OPTION = "dataset"
USER_CODE = True
"""Imported code may set torch's flags, and keep threads and memory: the next bench gets a fresh process."""

PATIENCE_SECONDS = {"quick": 20.0, "standard": 20.0, "thorough": 60.0}
CURVE_SHARE = 0.65
"""The share of the seconds in which the curve is to be decided; it takes the rest too where it is not."""
UNSENT_SHARE = 0.5
"""The share of the curve's seconds for numbers of workers that shared memory is too small for."""
WAITING_FACTOR = 4
"""The most workers tried for each CPU; fewer where fewer keep it busy, by how long workers wait."""
MOST_WORKERS = 64
LEAST_STALL_SECONDS, STALL = 3.0, 20.0
"""A block whose workers have delivered is stuck after so many seconds, or so many batch times if that is longer."""
MEMORY_SHARE = 0.7


def share_of(cpus: int) -> float:
    """The share of the seconds that is used: all with 16 CPUs, half with 4, which have less to search and to start."""
    return math.sqrt(min(16, max(4, cpus)) / 16)


def measure(context: Context) -> Iterator[Measurement | Gap]:
    for dataset in context.dataset:
        try:
            context.say("a first look at the dataset")
            patience = PATIENCE_SECONDS[context.budget]
            source = source_of(dataset.path, dataset.batch_size, patience)
            started = time.monotonic()
            seen = look(source)
            plan = _Plan.of(context, source, seen, dataset.step_ms, started)
            yield plan.bytes_row()
            with own_threads(free_cpus(context.facts.cpu, Host())):
                yield from _timed(plan)
        except UserCodeError as error:
            yield Gap(fact="bench.dataset", reason=str(error), cause=error.cause)
        finally:
            end_workers()


@dataclass(frozen=True, kw_only=True)
class _Plan:
    context: Context
    source: Source
    look: Look
    shm_batches: float
    """Whole batches that /dev/shm holds."""
    limit: int
    """The most workers that are tried: by CPUs, memory, and batches of an epoch."""
    alive: int
    step_ms: float | None
    step_seconds: float
    """The consumer's step for a batch under test, which may be a piece of one; 0 without a step."""
    deadline: float

    @classmethod
    def of(cls, context: Context, source: Source, seen: Look, step_ms: float | None, started: float) -> Self:
        facts = context.facts
        cpus, memory = facts.cpu.budget, facts.memory
        computing = per_cpu(facts.cpu) * min(cpus, facts.cpu.quota or cpus) / max(seen.busy, 1e-3)
        useful = round(min(WAITING_FACTOR * cpus, computing))  # a quota's pauses look like waiting, too
        wanted = min(MOST_WORKERS, useful, source.epoch_batches or MOST_WORKERS)
        free = [amount for amount in (memory.limit_free_bytes, memory.free_bytes) if amount is not None]
        alive = int(MEMORY_SHARE * min(free) / seen.worker_bytes) if free and seen.worker_bytes else 4 * wanted
        limit = max(1, min(wanted, alive))
        shm = memory.shm_free_bytes
        batches = SHARE * shm / seen.batch_bytes if shm is not None and seen.batch_bytes else float("inf")
        pieces = seen.batch_seconds / max(PIECE_SECONDS, limit * RECEIVED_SECONDS)
        stall = max(LEAST_STALL_SECONDS, STALL * seen.batch_seconds)
        source = replace(source, piece=_piece(source, pieces), stall=min(stall, source.patience))
        no_use = seen.same_samples or source.epoch_batches == 1
        step = (step_ms or 0.0) / 1000 * source.samples / (source.batch_size or 1)
        return cls(
            context=context,
            source=source,
            look=seen,
            shm_batches=batches,
            limit=0 if no_use else limit,
            alive=max(2, min(alive, int(min(batches, 1 << 20) / PREFETCH))),
            step_ms=step_ms,
            step_seconds=step,
            deadline=started + context.seconds * share_of(cpus),
        )

    @property
    def fitting(self) -> int:
        """The most workers whose batches in flight, one each, fit beside those that the consumer holds."""
        return int(max(0, min(self.limit, self.shm_batches - HELD)))

    def options(self, workers: int) -> Options:
        fitting = (self.shm_batches - HELD) // max(1, workers)
        return Options(workers=workers, prefetch_factor=int(max(1, min(PREFETCH, fitting))))

    def bytes_row(self) -> Measurement:
        return Measurement(
            bench="dataset",
            metric="batch_bytes",
            unit="B",
            samples=(float(self.look.batch_bytes),),  # exact: it is compared with the size of /dev/shm
            params={"batch": self.source.batch_size or 1},
            device=self.context.device,
        )


def _piece(source: Source, pieces: float) -> int | None:
    """Samples of a piece, to cut a batch into about so many; None for the whole, as with a sampler not torch's."""
    from torch.utils import data

    size = source.batch_size
    if not size or (source.indices is not None and type(source.indices) is not data.BatchSampler):
        return None
    divisors = [divisor for divisor in range(1, size + 1) if size % divisor == 0]
    nearest = min(divisors, key=lambda divisor: abs(math.log(divisor * pieces / size)))
    return nearest if nearest < size else None


def _timed(plan: _Plan) -> Iterator[Measurement | Gap]:
    share = CURVE_SHARE * (plan.deadline - time.monotonic())
    if plan.fitting < plan.limit:
        plan.context.say("workers, without handing over their batches")
        unsent = share * (UNSENT_SHARE if plan.fitting else 1)
        yield from _curve(plan, plan.limit, unsent, sent=False)
        share = share - unsent if plan.fitting else plan.deadline - time.monotonic()
    plan.context.say("workers")
    yield from _curve(plan, plan.fitting, share, sent=True)


def _curve(plan: _Plan, limit: int, seconds: float, *, sent: bool) -> Iterator[Measurement | Gap]:
    source, options = plan.source, plan.options if sent else Options
    if not sent:
        source = replace(source, more={**source.more, "collate_fn": Described(source.more["collate_fn"])})
    trial = WorkerTrial(
        source=source,
        options=options,
        limit=limit,
        alive=plan.alive,
        seconds=seconds,
        at_most=plan.deadline - time.monotonic() if sent else None,
        step_seconds=plan.step_seconds,
        enough=source.samples / plan.step_seconds if plan.step_seconds else None,
    )
    curve = measure_curve(trial)
    for count, samples in sorted((curve.rates if plan.step_ms else curve.all_rates).items()):
        if all(samples):
            ahead = options(count).prefetch_factor if count else None
            params = LoadingParams(
                kind="dataset",
                workers=count,
                batch=source.batch_size or 1,
                prefetch_factor=ahead,
                sent=sent,
                step_ms=plan.step_ms,
                epoch_batches=source.epoch_batches,
                same_samples=plan.look.same_samples,
            )
            yield row(plan.context, "dataset", samples, params)
    if sent:
        yield from curve.gaps("bench.dataset")
