"""The number of workers by the measured curve of a dataset, or of synthetic samples."""

from dataclasses import replace

from gputune.advice import Choice, Comparison, Facts, Measurement, Measurements
from gputune.advice._evidence import (
    NOT_MEASURED,
    LoadingParams,
    LoadingRows,
    choose,
    compared,
    loading_rows,
    missing,
    no_gain,
    range_text,
    unmeasured,
)
from gputune.resources.printable import counted
from gputune.search.workers import NEARLY_BEST

SAMPLES = {
    "decoding": "samples that cost CPU time",
    "memory": "slices of memory",
    "waiting": "samples that keep their reader waiting",
    "dataset": "the dataset's batches",
}
KINDS = ("decoding", "memory", "waiting")
FAMILIES = ("memory", "waiting")
"""The kinds of samples with a choice beside the general one, which is made for `decoding`."""
CLOSE = 1.30
"""With synthetic samples a number of workers within this ratio of the best is not told from it, and of such the most
are chosen, where they gain more than this over none. Rounds of a tenth of a second scatter by a tenth, and workers that
were stopped between them are slower to go on the more there are, so that even twelve rounds mislead."""
BELIEVED_FROM = 2.0
"""A gain that is believed although others used the CPUs meanwhile, which slows loading down with any number of
workers."""
LEEWAY = 1.25
"""With synthetic samples a gain above the number of workers times this is not believed."""
FED = 1.01
"""A consumer is fed when it waits for less than a hundredth of its step."""

ONLY_IN_WORKERS = "the dataset can be loaded in workers only: without any, loading failed"
SINGLE_BATCH = "an epoch is a single batch, so that there is nothing for workers to do beside it"
SAME_SAMPLES = (
    "every worker yields the whole dataset: divide it among them by torch.utils.data.get_worker_info(), "
    "until then more than one would repeat its samples"
)
NO_ROOM = "/dev/shm is too small for what even one worker hands over"


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    return _choice(measurements, "dataset" if curve(measurements, "dataset") else "decoding")


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    return by_kind(measurements).get(family)


def gain_of(facts: Facts, measurements: Measurements, value: int, family: str) -> Comparison | None:
    bench = bench_of(measurements)
    rows = loading_rows(measurements, bench, "dataset" if bench == "dataset" else family or "decoding")
    some, none = _with_workers(rows, value), _with_workers(rows, 0)
    return compared(rows[some], rows[none]) if some and none else None


def by_kind(measurements: Measurements) -> dict[str, Choice]:
    """The choices for the measured kinds in `FAMILIES`; none beside the user's own dataset, which comes first."""
    choices = {} if curve(measurements, "dataset") else {kind: _choice(measurements, kind) for kind in FAMILIES}
    return {kind: choice for kind, choice in choices.items() if choice.evidence}


def of_kind(measurements: Measurements, kind: str) -> int | None:
    """The workers for one kind of samples; None where it was not measured, or too little of it."""
    choice = _choice(measurements, kind)
    return _count(choice) if choice.evidence else None


def chosen_workers(facts: Facts, measurements: Measurements) -> int:
    return _count(recommend(facts, measurements))


def curve(measurements: Measurements, kind: str) -> LoadingRows:
    rows = loading_rows(measurements, "dataset" if kind == "dataset" else "dataloader", kind)
    return _in_turn({params: row for params, row in rows.items() if params.sent})


def bench_of(measurements: Measurements) -> str:
    """The bench whose rows decide on a DataLoader's other options: the user's own dataset where it was measured."""
    return "dataset" if curve(measurements, "dataset") else "dataloader"


def without_limit(measurements: Measurements) -> LoadingParams | None:
    """The best row if shared memory held any number of batches; None where it was no limit."""
    rows = loading_rows(measurements, "dataset", "dataset")
    return preferred(_in_turn({params: row for params, row in rows.items() if not params.sent}))


def preferred(rows: LoadingRows) -> LoadingParams | None:
    """The fewest workers that feed the consumer, or else within `NEARLY_BEST` of the best row; with synthetic samples
    the most within `CLOSE` of it that certainly gain more than that over none, or the fastest. None without rows.
    """
    if not rows:
        return None
    fastest = _fastest(rows)
    best = rows[fastest]
    near = [params for params, row in rows.items() if _ratio(best, row) <= NEARLY_BEST]
    if fastest.kind in KINDS and all(params.workers for params in near):
        close = [params for params, row in rows.items() if params.workers and best.median <= CLOSE * row.median]
        gaining = [params for params in close if _gains(rows, params)]
        return max(gaining or [fastest], key=lambda params: params.workers)
    fed = [params for params, row in rows.items() if _is_fed(params, row)]
    return min(fed or near, key=lambda params: params.workers)


def _gains(rows: LoadingRows, params: LoadingParams) -> bool:
    none = _with_workers(rows, 0)
    comparison = compared(rows[params], rows[none]) if none else None
    return comparison is not None and comparison.low > 1 and comparison.ratio > CLOSE


def _fastest(rows: LoadingRows) -> LoadingParams:
    return max(rows, key=lambda params: rows[params].median)


def _in_turn(rows: LoadingRows) -> LoadingRows:
    """The longest rows, which were taken in turn: shorter ones are a search's, or were given up. None is one."""
    longest = max((len(row.samples) for row in rows.values()), default=0)
    return {params: row for params, row in rows.items() if len(row.samples) == longest or not params.workers}


def _ratio(best: Measurement, row: Measurement) -> float:
    """By pairs where there are enough of them: what disturbs a round disturbs both."""
    comparison = best.against(row)
    return comparison.ratio if comparison else best.median / row.median


def _is_fed(params: LoadingParams, row: Measurement) -> bool:
    if params.batch is None or params.step_ms is None:
        return False
    return row.median * params.step_ms * FED >= 1000.0 * params.batch


def _choice(measurements: Measurements, kind: str) -> Choice:
    rows = curve(measurements, kind)
    return _for_dataset(rows, measurements) if kind == "dataset" and rows else _against_none(rows, kind)


def _count(choice: Choice) -> int:
    return choice.value if isinstance(choice.value, int) else 0


def _with_workers(rows: LoadingRows, workers: int) -> LoadingParams | None:
    return next((params for params in rows if params.workers == workers), None)


def _against_none(rows: LoadingRows, kind: str) -> Choice:
    none, best = _with_workers(rows, 0), preferred(rows)
    if none is None or best is None or not any(one.workers for one in rows):
        return unmeasured(0, NOT_MEASURED)
    bench = rows[best].bench
    tried = best if best.workers else _fastest({one: row for one, row in rows.items() if one.workers})
    comparison, workers = compared(rows[tried], rows[none]), counted(tried.workers, "worker")
    if comparison is None:
        more = ": --budget thorough takes longer" if bench == "dataset" else ""
        slow = "" if best.workers else f": {SAMPLES[kind]} came no faster with {workers} than with none"
        return unmeasured(0, missing(rows[tried], rows[none]) + (slow or more))
    sentence = f"{SAMPLES[kind]} came {range_text(comparison)} as fast with {workers} as with none"
    if kind in KINDS and (too_fast := _too_fast(rows, none)):
        few = counted(too_fast.workers, "worker")
        said = f"not believed: {sentence}, and {few} seemed faster than can be; loading without any was disturbed"
        return replace(choose(0, said, comparison, bench), provisional=True)
    if best.workers and comparison.low > 1:
        if kind in KINDS and best.workers > _fastest(rows).workers:
            sentence += "; such short rounds do not tell it from fewer workers"
        return choose(best.workers, sentence, comparison, bench)
    return choose(0, f"{no_gain(comparison)}: {sentence}", comparison, bench)


def _too_fast(rows: LoadingRows, none: LoadingParams) -> LoadingParams | None:
    """A number of workers that seemed faster over none than so many can be."""
    for params, row in rows.items():
        comparison = compared(row, rows[none]) if params.workers else None
        if comparison and comparison.ratio > LEEWAY * params.workers:
            return params
    return None


def _for_dataset(rows: LoadingRows, measurements: Measurements) -> Choice:
    seen, best, bench = next(iter(rows)), preferred(rows), "dataset"
    if seen.same_samples:
        return choose(0, SAME_SAMPLES, None, bench)
    if seen.epoch_batches == 1:
        return choose(0, SINGLE_BATCH, None, bench)
    if best and all(params.workers for params in rows):
        return choose(best.workers, ONLY_IN_WORKERS, None, bench)
    unlimited = without_limit(measurements)
    none_fits = unlimited is not None and not any(params.workers for params in rows)
    choice = choose(0, NO_ROOM, None, bench) if none_fits else _against_none(rows, "dataset")
    reason = choice.reason + _consumer_waits(rows, _count(choice))
    if unlimited and unlimited.workers > _count(choice):
        reason += f"; were /dev/shm large enough, it would be {counted(unlimited.workers, 'worker')} (see shm_size)"
    return replace(choice, reason=reason)


def _consumer_waits(rows: LoadingRows, workers: int) -> str:
    none, chosen = _with_workers(rows, 0), _with_workers(rows, workers)
    if none is None or chosen is None:
        return ""
    free = _wait_ms(none, rows[none])
    waits = _milliseconds(_wait_ms(chosen, rows[chosen]) if workers else free)
    said = f"a consumer waits {waits} for each batch of {chosen.batch}"
    if chosen.step_ms is not None:
        said = f"a step of {_milliseconds(chosen.step_ms)} waits {waits} for its batch of {chosen.batch}"
    return f"; {said}" + (f", with torch's defaults {_milliseconds(free)}" if workers else "")


def _wait_ms(params: LoadingParams, row: Measurement) -> float:
    """For each batch, besides the consumer's step, which is in the rates of the curve."""
    return max(0.0, 1000 * (params.batch or 1) / row.median - (params.step_ms or 0.0))


def _milliseconds(value: float) -> str:
    return f"{value:.3g} ms" if value < 999.5 else f"{value:.0f} ms"
