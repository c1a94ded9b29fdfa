"""A chart of loading: samples per second by the number of a DataLoader's workers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat

from gputune.advice._evidence import LoadingParams, LoadingRows, loading_rows
from gputune.advice.dataloader_workers import CLOSE, KINDS, curve, of_kind
from gputune.measurement import Measurement
from gputune.report.charts import Bar, Cell, Chart, Picture, mark, number, ratio
from gputune.search.workers import NEARLY_BEST

Rates = Mapping[int, tuple[LoadingParams, Measurement]]
DATASET = "your dataset"
STARS = {
    ("dataset",): f"the fewest within {100 * (NEARLY_BEST - 1):.0f} % of the best",
    KINDS: f"the most within {100 * (CLOSE - 1):.0f} % of the best that gain",
}
"""By the kinds of samples in one chart, which number of workers has the star."""


def workers(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """Rows whose batches were not handed over are left out. Ratios are of rows taken in turn with no workers."""
    for kinds, star in STARS.items():
        lines = [
            line
            for kind in kinds
            for line in _lines(kind, _rates(measurements, kind), curve(measurements, kind), of_kind(measurements, kind))
        ]
        if lines:
            yield Chart(
                title=f"DataLoader: samples/s by workers (* {star})",
                columns=("samples", "", "workers", "", "samples/s", "to 0 workers"),
                numbers=("workers", "samples/s"),
                rows=lines,
                pictures=tuple(_curves(measurements, kinds)),
            )


def _curves(measurements: Sequence[Measurement], kinds: Sequence[str]) -> Iterator[Picture]:
    """A picture of each kind: their rates are too far apart for one."""
    for kind in kinds:
        rates, recommended = _rates(measurements, kind), of_kind(measurements, kind)
        if rates:
            name = DATASET if kind == "dataset" else kind
            marks = {f"{at} workers": (replace(mark(row), chosen=at == recommended),) for at, (_, row) in rates.items()}
            yield Picture(name=name, unit="samples/s", rows=marks)


def _rates(measurements: Sequence[Measurement], kind: str) -> Rates:
    rows = loading_rows(measurements, "dataset" if kind == "dataset" else "dataloader", kind)
    by_count = {params.workers: (params, row) for params, row in rows.items() if params.sent}
    return dict(sorted(by_count.items()))


def _lines(kind: str, rates: Rates, in_turn: LoadingRows, recommended: int | None) -> Iterator[tuple[Cell, ...]]:
    most = max((row.median for _, row in rates.values()), default=0.0)
    none = rates[0][1] if 0 in rates else None
    for name, (count, (params, row)) in zip(_names(kind, rates), rates.items(), strict=False):
        star = "*" if count == recommended else ""
        times = ratio(row, none) if none and params in in_turn else "a first look only"
        yield name, star, str(count), Bar(value=row.median, most=most), number(row.median), times


def _names(kind: str, rates: Rates) -> Iterator[str]:
    steps = [f"step {number(params.step_ms)} ms" for params, _ in rates.values() if params.step_ms]
    return chain([DATASET if kind == "dataset" else kind], steps[:1], repeat(""))
