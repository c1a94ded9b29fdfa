"""The parameters of a measured row of loading: what the benches write, and advice, checks and charts read back."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from . import Measurement

WORKERS, PREFETCH_FACTORS, THREADS = (0, 1024), (1, 64), (1, 4096)
"""The least and the most that a profile may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingParams:
    """How the samples of a row were loaded; None where the row's kind does not say."""

    kind: str
    """`decoding`, `memory` or `waiting`: synthetic samples; `dataset`: the user's own; `unhindered`: the user's own,
    without the consumer's step; `prefetch`, `threads`, `transfer` or `epochs`: another option, at one number of
    workers.
    """
    workers: int
    batch: int | None = None
    """Samples in a batch of the user's own dataset."""
    prefetch_factor: int | None = None
    sent: bool = True
    """Whether the workers handed over what they made. Where shared memory was too small for that, they only made it."""
    step_ms: float | None = None
    """How long the consumer works on each batch."""
    epoch_batches: int | None = None
    same_samples: bool = False
    """Whether two workers yielded the same samples, each of them the whole of an IterableDataset."""
    persistent_workers: bool | None = None
    pin_memory: bool | None = None
    threads: int | None = None
    epoch_seconds: float | None = None

    @property
    def params(self) -> dict[str, str | int | float | bool]:
        """For a Measurement; what is at its default is left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}


LoadingRows = Mapping[LoadingParams, "Measurement"]


def params_of(row: Measurement) -> LoadingParams | None:
    """The parameters of a row of loading; None where it holds what no bench writes, as a profile's file may."""
    facts = {fact: value for verdict, (fact, value) in _VERDICTS.items() if row.params.get(verdict)}
    given: dict[str, Any] = {name: value for name, value in (facts | row.params).items() if name in _VALID}
    if not {"kind", "workers"} <= given.keys() or not all(_VALID[name](value) for name, value in given.items()):
        return None
    params = LoadingParams(**given)
    return None if params.batch is None and params.kind in ("dataset", "unhindered") else params


def loading_rows(measurements: Iterable[Measurement], bench: str, kind: str) -> dict[LoadingParams, Measurement]:
    """The rows of `dataloader` or `dataset` of one kind, by their parameters."""
    rows = [row for row in measurements if (row.bench, row.metric) == (bench, "throughput") and row.median > 0]
    return {params: row for row in rows if (params := params_of(row)) and params.kind == kind}


_VERDICTS: dict[str, tuple[str, Any]] = {"alike": ("same_samples", True), "single": ("epoch_batches", 1)}
"""Parameters that gputune 0.1.0 wrote, and the observations that they stood for."""


def _whole(low: int, high: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _number(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and 0 <= value <= _LARGEST


def _flag(value: object) -> bool:
    return type(value) is bool


_LARGEST = 1 << 63
_VALID: dict[str, Callable[[object], bool]] = {
    "kind": lambda value: isinstance(value, str),
    "workers": _whole(*WORKERS),
    "batch": _whole(1, _LARGEST),
    "prefetch_factor": _whole(*PREFETCH_FACTORS),
    "sent": _flag,
    "step_ms": lambda value: _number(value) and value != 0,
    "epoch_batches": _whole(0, _LARGEST),
    "same_samples": _flag,
    "persistent_workers": _flag,
    "pin_memory": _flag,
    "threads": _whole(*THREADS),
    "epoch_seconds": _number,
}
