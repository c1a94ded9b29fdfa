"""The parameters of measured rows, selecting and comparing rows, and turning a comparison into a choice."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Self, get_args, get_type_hints

from gputune.advice import Choice, Measurements
from gputune.knobs import Value, dataloader_prefetch_factor, dataloader_workers
from gputune.measurement import Comparison, Measurement

NOT_MEASURED = "not measured in this run's budget"
TOO_FEW = "too few samples in this run to tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind of row, shared by bench and advice: each field is a key of `params`, left out there at its default."""

    @property
    def params(self) -> dict[str, Any]:
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}

    @classmethod
    def of(cls, params: Mapping[str, object]) -> Self | None:
        """Read from the `params` of a row; None where a file's row lacks a key or holds another type there."""
        values: dict[str, Any] = {field.name: params.get(field.name, field.default) for field in fields(cls)}
        types = _types(cls)  # type: ignore[arg-type]  # a class is hashable
        return cls(**values) if all(_is_a(value, types[name]) for name, value in values.items()) else None


def _is_a(value: object, kind: Any) -> bool:
    """As `isinstance`, except that True and False are no numbers."""
    return isinstance(value, kind) and (type(value) is not bool or bool in (kind, *get_args(kind)))


_types = cache(get_type_hints)


def never() -> Comparison:
    """The speed of a value that must not be used, however fast it is."""
    return Comparison(ratio=0.0, low=0.0, high=0.0, pairs=0)


def product(comparisons: Iterable[Comparison]) -> Comparison | None:
    """The product of several gains, with the widest interval that it may have; None of none."""
    factors = list(comparisons)
    if not factors:
        return None
    return replace(
        factors[0],
        ratio=math.prod(one.ratio for one in factors),
        low=math.prod(one.low for one in factors),
        high=math.prod(one.high for one in factors),
    )


def select(measurements: Iterable[Measurement], bench: str, metric: str, **params: object) -> list[Measurement]:
    return [
        row
        for row in measurements
        if row.bench == bench and row.metric == metric and params.items() <= row.params.items()
    ]


def first(measurements: Iterable[Measurement], bench: str, metric: str, **params: object) -> Measurement | None:
    return next(iter(select(measurements, bench, metric, **params)), None)


def compared(candidate: Measurement | None, baseline: Measurement | None) -> Comparison | None:
    """How the first compares with the second; None where either is missing or has too few samples."""
    return candidate.against(baseline) if candidate is not None and baseline is not None else None


def beats(candidate: Measurement, baseline: Measurement) -> bool:
    comparison = candidate.against(baseline)
    return comparison is not None and comparison.verdict == "gain"


def choose(value: Value, reason: str, comparison: Comparison | None = None, *evidence: str) -> Choice:
    """Choose `value`, with the comparison of the alternative to torch's default and the benches behind it."""
    gain, interval = (comparison.ratio, comparison.interval) if comparison else (None, None)
    return Choice(value=value, gain=gain, interval=interval, reason=reason, evidence=evidence)


def unmeasured(default: Value, reason: str) -> Choice:
    """Leave torch's default, since what would tell was not measured, or too little of it."""
    return Choice(value=default, reason=reason, unmeasured=True)


def range_text(comparison: Comparison) -> str:
    """A comparison in words: `1.02 times (0.99 to 1.05)`."""
    return f"{comparison.ratio:.3g} times ({comparison.low:.3g} to {comparison.high:.3g})"


def missing(*rows: object) -> str:
    """Why nothing can be concluded: a row was not measured (None, or an empty list), or has too few samples."""
    return TOO_FEW if all(rows) else NOT_MEASURED


def decide(comparison: Comparison, what: str, bench: str, *, chosen: bool | None = None, why: str = "") -> Choice:
    """Turn a setting on if it gains; `what` is the reason's subject. `chosen` overrides the verdict, for the reason
    `why`.
    """
    gains = comparison.verdict == "gain"
    is_on = gains if chosen is None else chosen
    begins = why if is_on != gains else "" if gains else no_gain(comparison)
    reason = f"{what} ran {range_text(comparison)} as fast as with torch's default"
    return choose(is_on, f"{begins}: {reason}" if begins else reason, comparison, bench)


def no_gain(comparison: Comparison) -> str:
    """The beginning of a reason: whether a gain is excluded, or only not certain."""
    return "no gain" if comparison.verdict == "no gain" else "no certain gain of 3 %"


def of_device(measurements: Iterable[Measurement]) -> bool:
    """Whether the profile's device is a GPU, judged by the device of its measurements."""
    return any(row.device.startswith("cuda") for row in measurements)


def pooled(candidates: Measurements, baselines: Measurements) -> Comparison | None:
    """Compare two settings over workloads of the same rounds, by the geometric mean; the rows are paired in order."""
    if not candidates or len(candidates) != len(baselines):
        return None
    (candidate, baseline), *others = zip(candidates, baselines, strict=True)
    return candidate.pooled(baseline, others) if others else candidate.against(baseline)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingParams(Row):
    """How the samples of a row were loaded; None where the row's kind does not say."""

    kind: str
    """`decoding`, `memory` or `waiting`: synthetic samples; `dataset`: the user's own."""
    workers: int
    batch: int | None = None
    """Samples in a batch of the user's own dataset."""
    prefetch_factor: int | None = None
    sent: bool = True
    """Whether the workers handed over what they made. Where shared memory was too small for that, they only made it."""
    step_ms: float | int | None = None
    """How long the consumer works on each batch."""
    epoch_batches: int | None = None
    same_samples: bool = False
    """Whether two workers yielded the same samples, each of them the whole of an IterableDataset."""


LoadingRows = Mapping[LoadingParams, Measurement]


def params_of(row: Measurement) -> LoadingParams | None:
    """The parameters of a row of loading; None where it holds what no bench writes, as a profile's file may."""
    facts = {fact: value for verdict, (fact, value) in _VERDICTS.items() if row.params.get(verdict)}
    params = LoadingParams.of(facts | row.params)
    if params is None or (params.batch is None and params.kind == "dataset") or params.step_ms == 0:
        return None
    numbers = ((getattr(params, name), limits) for name, limits in _LIMITS.items())
    return params if all(number is None or low <= number <= high for number, (low, high) in numbers) else None


def loading_rows(measurements: Iterable[Measurement], bench: str, kind: str) -> dict[LoadingParams, Measurement]:
    rows = [row for row in measurements if (row.bench, row.metric) == (bench, "throughput") and row.median > 0]
    return {params: row for row in rows if (params := params_of(row)) and params.kind == kind}


_VERDICTS: dict[str, tuple[str, Any]] = {"alike": ("same_samples", True), "single": ("epoch_batches", 1)}
"""Parameters that gputune 0.1.0 wrote, and the observations that they stood for."""
_LARGEST = 1 << 63
_LIMITS = {
    "workers": dataloader_workers.LIMITS,
    "batch": (1, _LARGEST),
    "prefetch_factor": dataloader_prefetch_factor.LIMITS,
    "step_ms": (0, _LARGEST),
    "epoch_batches": (0, _LARGEST),
}
"""The least and the most that a bench writes."""
