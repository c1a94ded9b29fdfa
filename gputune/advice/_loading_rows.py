"""The parameters of a measured row of loading: what the benches write, and advice, checks and charts read back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gputune.advice import Measurement
from gputune.advice._evidence import Row
from gputune.knobs import dataloader_prefetch_factor, dataloader_workers


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


LoadingRows = Mapping[LoadingParams, "Measurement"]


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
