"""How many worker processes a DataLoader gets (`num_workers`; torch's default is 0: the training process loads itself).

Where the user's own dataset was measured (`gputune probe --dataset`), the fewest workers within 3 % of the best, or with a
consumer's step the fewest with which it waits for less than 1 % of its step. Else measured on three kinds of synthetic samples:
ones that cost CPU time, as decoding images does, which the choice is made for; slices of memory, for which workers usually cost
more than they bring; and ones that are waited for, as an object store's are, which may want more workers than there are CPUs.
`Tuning.dataloader_kwargs(dataset)` tells which kind a dataset is.

Source: PyTorch, "torch.utils.data"; measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import Choice, Numerics, Phase
from ._evidence import NOT_MEASURED, change, compared, counted, keep, lacking, no_gain, range_text, select

VALUE = int
PHASE: Phase = "code"
USE = "DataLoader(dataset, **tuning.dataloader_kwargs())"
NUMERICS: Numerics = "exact"
DEPENDS = ("cpu",)
LIMITS = (0, 1024)

KINDS = ("decoding", "memory", "waiting")
NEARLY_BEST = 1.03
"""The fewest workers within this ratio of the best: each costs memory and a process."""
FEW_PAIRS, BY_FAR = 4, 1.5
"""Four pairs that all say "half as fast again" are no chance, though they are too few for an interval at 99 %: each block scatters
by a tenth or two.
"""
FED = 1.01
"""A consumer is fed when it waits for less than a hundredth of its step."""


def recommend(facts: Any, measurements: Any) -> Choice:
    rows = curve(measurements, "dataset")
    if rows:
        return _of_dataset(rows, measurements)
    rows = curve(measurements, "decoding")
    choice = _choice(rows, "samples that cost CPU time", "dataloader")
    return _with(choice, _others(measurements)) if rows else choice


def of_kind(measurements: Any, kind: str) -> int | None:
    """The workers for one of the synthetic `KINDS`; None where it was not measured, or too little of it."""
    choice = _choice(curve(measurements, kind), kind, "dataloader")
    workers: Any = choice.value
    return int(workers) if choice.evidence else None


def curve(measurements: Any, kind: str) -> list[Any]:
    """The rows of one kind of samples that can be compared: those as long as the longest, which were taken in turn."""
    bench = "dataset" if kind == "dataset" else "dataloader"
    return in_turn([row for row in select(measurements, bench, "throughput", kind=kind) if sent(row)])


def bench_of(measurements: Any) -> str:
    """Whose rows a DataLoader's other options are chosen by: the user's own dataset where it was measured."""
    return "dataset" if curve(measurements, "dataset") else "dataloader"


def sent(row: Any) -> bool:
    """Whether the workers handed over what they made. Where shared memory was too small for that, they only made it."""
    return bool(row.params.get("sent", True))


def in_turn(rows: Sequence[Any]) -> list[Any]:
    """The rows that are as long as the longest: shorter ones are from a search, or were given up."""
    known = readable(rows)
    longest = max((len(row.samples) for row in known), default=0)
    return [row for row in known if len(row.samples) == longest]


def readable(rows: Sequence[Any]) -> list[Any]:
    """Those of a number of workers that a profile may ask for; what a file holds may be anything."""
    return [row for row in rows if row.median > 0 and row.params.get("workers") in range(LIMITS[0], LIMITS[1] + 1)]


def fewest(rows: Sequence[Any]) -> Any:
    """The row with the fewest workers that keep the consumer fed, where one step of it is known, or else whose median throughput
    is within `NEARLY_BEST` of the best row's; None without rows.
    """
    if not rows:
        return None
    best = max(rows, key=lambda row: row.median)
    near = [row for row in rows if _ratio(best, row) <= NEARLY_BEST]
    fed = [row for row in rows if _fed(row)]
    return min(fed or near, key=lambda row: row.params["workers"])


def _ratio(best: Any, row: Any) -> float:
    """By pairs where there are enough of them: what disturbs a round disturbs both."""
    comparison = best.against(row)
    return float(comparison.ratio if comparison else best.median / row.median)


def _fed(row: Any) -> bool:
    """Whether a consumer waits so little that it takes nearly as many samples as its steps alone allow."""
    batch, step_ms = row.params.get("batch"), row.params.get("step_ms")
    if not isinstance(batch, int) or not isinstance(step_ms, int | float):
        return False
    return bool(row.median * step_ms * FED >= 1000.0 * batch)


def _choice(rows: Sequence[Any], what: str, bench: str) -> Choice:
    none = next((row for row in rows if row.params["workers"] == 0), None)
    if none is None or len(rows) < 2:
        return keep(0, NOT_MEASURED)
    best = fewest(rows)
    if best is none:
        best = max((row for row in rows if row is not none), key=lambda row: row.median)
        comparison = compared(best, none)
        if comparison is None:
            return keep(0, f"{lacking(best, none)}: {what} came no faster with {_workers(best)} than with none")
        return keep(0, f"{no_gain(comparison)}: {_sentence(what, best, comparison)}", [bench], comparison)
    comparison = compared(best, none)
    if comparison is None:
        return _by_far(best, none, what, bench)
    if comparison.low > 1:
        return change(int(best.params["workers"]), comparison, _sentence(what, best, comparison), [bench])
    return keep(0, f"{no_gain(comparison)}: {_sentence(what, best, comparison)}", [bench], comparison)


def _by_far(best: Any, none: Any, what: str, bench: str) -> Choice:
    """From fewer pairs than an interval takes: only where all of them say so by far. Slow samples leave time for no more."""
    from statistics import median  # slow to import, and the shim imports this file

    ratios = best.ratios(none)
    if len(ratios) < FEW_PAIRS or min(ratios) < BY_FAR:
        more = ": --budget thorough takes longer" if bench == "dataset" else ""
        return keep(0, lacking(best, none) + more)
    all_of_them = f"in each of {len(ratios)} pairs at least {min(ratios):.3g} times"
    reason = f"{what} came {median(ratios):.3g} times as fast with {_workers(best)} as with none, {all_of_them}"
    return Choice(value=int(best.params["workers"]), gain=median(ratios), reason=reason, evidence=(bench,))


def _sentence(what: str, row: Any, comparison: Any) -> str:
    return f"{what} came {range_text(comparison)} as fast with {_workers(row)} as with none"


def _workers(row: Any) -> str:
    return counted(row.params["workers"], "worker")


def _with(choice: Choice, more: str) -> Choice:
    return Choice(
        value=choice.value,
        gain=choice.gain,
        interval=choice.interval,
        reason=choice.reason + more,
        evidence=choice.evidence,
    )


def _others(measurements: Any) -> str:
    """What suits the other kinds of samples."""
    found = {
        "slices of memory": of_kind(measurements, "memory"),
        "samples waited for": of_kind(measurements, "waiting"),
    }
    said = [f"{counted(count, 'worker')} for {what}" for what, count in found.items() if count is not None]
    return f"; {' and '.join(said)}" if said else ""


ONLY_IN_WORKERS = "the dataset can be loaded in workers only: without any, loading failed"
SINGLE = "an epoch is a single batch, so that there is nothing for workers to do beside it"
ALIKE = (
    "every worker yields the whole dataset: divide it among them by torch.utils.data.get_worker_info(), "
    "until then more than one would repeat its samples"
)
NO_ROOM = "/dev/shm is too small for what even one worker hands over"


def _of_dataset(rows: Sequence[Any], measurements: Any) -> Choice:
    for sign, why in (("alike", ALIKE), ("single", SINGLE)):
        if rows[0].params.get(sign):
            return keep(0, why, ["dataset"])
    if all(row.params["workers"] for row in rows):
        return Choice(value=int(fewest(rows).params["workers"]), reason=ONLY_IN_WORKERS, evidence=("dataset",))
    unsent = without_limit(measurements)
    none_fits = unsent is not None and not any(row.params["workers"] for row in rows)
    choice = keep(0, NO_ROOM, ["dataset"]) if none_fits else _choice(rows, "the dataset's batches", "dataset")
    choice = _with(choice, _consumer(rows, measurements, choice))
    if unsent is None or unsent.params["workers"] <= choice.value:
        return choice
    return _with(choice, f"; were /dev/shm large enough, it would be {_workers(unsent)} (see shm_size)")


def without_limit(measurements: Any) -> Any:
    """The row that would be the best if shared memory held any number of batches; None where it was no limit."""
    return fewest(in_turn(select(measurements, "dataset", "throughput", kind="dataset", sent=False)))


def _consumer(rows: Sequence[Any], measurements: Any, choice: Choice) -> str:
    """What the consumer waits for each batch, with the workers chosen and with torch's default."""
    none = next((row for row in rows if row.params["workers"] == 0), None)
    chosen = next((row for row in rows if row.params["workers"] == choice.value), None)
    if none is None or chosen is None:
        return ""
    free = next(filter(sent, select(measurements, "dataset", "throughput", kind="unhindered")), none)
    waits = _ms(_waits_ms(chosen if choice.value else free))
    step_ms, batch = chosen.params.get("step_ms"), chosen.params["batch"]
    said = f"a consumer waits {waits} for each batch of {batch}"
    if step_ms is not None:
        said = f"a step of {_ms(step_ms)} waits {waits} for its batch of {batch}"
    return f"; {said}" + (f", with torch's defaults {_ms(_waits_ms(free))}" if choice.value else "")


def _waits_ms(row: Any) -> float:
    """For each batch, besides the consumer's step, which is in the rates of the curve and not in the unhindered one."""
    step_ms = row.params.get("step_ms", 0.0) if row.params["kind"] == "dataset" else 0.0
    waits: float = 1000 * row.params["batch"] / row.median - step_ms
    return max(0.0, waits)


def _ms(value: float) -> str:
    return f"{value:.3g} ms" if value < 999.5 else f"{value:.0f} ms"
