"""A chart of loading: samples per second by the number of a DataLoader's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, repeat

from gputune.measurement import Measurement
from gputune.report.charts import Bar, Cell, Chart, number, ratio, rows
from gputune.settings import dataloader_workers

DATASET = "your dataset"


def workers(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """The user's own dataset, then each kind of synthetic samples; a star marks what is recommended for it.

    What workers made without handing it over is left out. Ratios are of rows that were taken in turn with no workers.
    """
    known = [*_of_dataset(measurements), *rows(measurements, "dataloader throughput", "kind")]
    curves = {kind: _curve(known, kind) for kind in ("dataset", *dataloader_workers.KINDS)}
    lines = [line for kind, curve in curves.items() for line in _lines(kind, curve, _recommended(known, kind))]
    if lines:
        yield Chart(
            title="DataLoader: samples/s by number of workers (* recommended)",
            columns=("samples", "", "workers", "", "samples/s", "to 0 workers"),
            numbers=("workers", "samples/s"),
            rows=lines,
        )


def _of_dataset(measurements: Sequence[Measurement]) -> list[Measurement]:
    """What `settings.dataloader_workers` can read."""
    found = rows(measurements, "dataset throughput", "kind", "batch")
    paced = rows(measurements, "dataset throughput", "kind", "batch step_ms")
    return [row for row in found if row in paced or "step_ms" not in row.params]


def _curve(known: Sequence[Measurement], kind: str) -> dict[int, Measurement]:
    bench = "dataset" if kind == "dataset" else "dataloader"
    found = [row for row in known if (row.bench, row.params["kind"]) == (bench, kind) and dataloader_workers.sent(row)]
    by_count = {int(row.params["workers"]): row for row in dataloader_workers.readable(found)}
    return dict(sorted(by_count.items()))


def _recommended(known: Sequence[Measurement], kind: str) -> object:
    if kind != "dataset":
        return dataloader_workers.of_kind(known, kind)
    choice = dataloader_workers.recommend(None, known)
    return choice.value if choice.evidence else None


def _lines(kind: str, curve: dict[int, Measurement], recommended: object) -> Iterator[tuple[Cell, ...]]:
    most = max((row.median for row in curve.values()), default=0.0)
    for name, (count, row) in zip(_names(kind, curve), curve.items(), strict=False):
        star = "*" if count == recommended else ""
        yield name, star, str(count), Bar(value=row.median, most=most), number(row.median), _ratio(row, curve.get(0))


def _names(kind: str, curve: dict[int, Measurement]) -> Iterator[str]:
    """Below the kind the consumer's step, where it has one."""
    steps = [f"step {number(float(row.params['step_ms']))} ms" for row in curve.values() if "step_ms" in row.params]
    return chain([DATASET if kind == "dataset" else kind], steps[:1], repeat(""))


def _ratio(row: Measurement, none: Measurement | None) -> str:
    return ratio(row, none) if none and len(row.samples) == len(none.samples) else ""
