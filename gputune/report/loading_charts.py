"""A chart of loading: samples per second by the number of a DataLoader's workers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat

from gputune.advice._evidence import LoadingParams, LoadingRows, loading_rows
from gputune.advice.dataloader_workers import CLOSE, KINDS, bench_of, curve, of_kind
from gputune.knobs.dataloader_workers import WORKERS
from gputune.measurement import Measurement
from gputune.profile import Profile
from gputune.report.charts import STAR, Bar, Cell, Chart, Picture, mark, number, ratio
from gputune.search.workers import NEARLY_BEST

Rates = Mapping[int, tuple[LoadingParams, Measurement]]
DATASET = "your dataset"
STARS = {
    ("dataset",): f"the fewest within {100 * (NEARLY_BEST - 1):.0f} % of the best",
    KINDS: f"the most within {100 * (CLOSE - 1):.0f} % of the best that gain",
}
"""By the kinds of samples in one chart, the rule by which a number of workers has the star."""


def workers(profile: Profile) -> Iterator[Chart]:
    """Rows whose batches were not handed over are left out. Ratios are of rows taken in turn with no workers. The star
    is on the profile's choice, which another rule made where it stands from an earlier probe.
    """
    measurements = profile.measurements
    for kinds, rule in STARS.items():
        rates = {kind: found for kind in kinds if (found := _rates(measurements, kind))}
        chosen = {kind: _chosen(profile, kind) for kind in rates}
        stars = [kind for kind, count in chosen.items() if count is not None]
        by_rule = all(chosen[kind] == of_kind(measurements, kind) for kind in stars)
        if rates:
            yield Chart(
                title="DataLoader: samples/s by workers",
                star=(rule if by_rule else "recommended") if stars else "",
                columns=("samples", "", "workers", "", "samples/s", "to 0 workers"),
                numbers=("workers", "samples/s"),
                rows=[
                    line
                    for kind, found in rates.items()
                    for line in _lines(kind, found, curve(measurements, kind), chosen[kind])
                ],
                pictures=tuple(_curve(kind, found, chosen[kind]) for kind, found in rates.items()),
            )


def _chosen(profile: Profile, kind: str) -> int | None:
    """The number of workers that is recommended for a kind of samples; None where none is, or not yet."""
    general = "dataset" if bench_of(profile.measurements) == "dataset" else "decoding"
    choice = (profile.settings if kind == general else profile.families.get(kind, {})).get(WORKERS)
    if choice is None or choice.unmeasured or choice.provisional:
        return None
    return choice.value if isinstance(choice.value, int) else None


def _curve(kind: str, rates: Rates, recommended: int | None) -> Picture:
    """Each kind has a picture of its own: their rates are too far apart for one."""
    marks = {f"{at} workers": (replace(mark(row), chosen=at == recommended),) for at, (_, row) in rates.items()}
    return Picture(name=DATASET if kind == "dataset" else kind, unit="samples/s", rows=marks)


def _rates(measurements: Sequence[Measurement], kind: str) -> Rates:
    rows = loading_rows(measurements, "dataset" if kind == "dataset" else "dataloader", kind)
    by_count = {params.workers: (params, row) for params, row in rows.items() if params.sent}
    return dict(sorted(by_count.items()))


def _lines(kind: str, rates: Rates, in_turn: LoadingRows, recommended: int | None) -> Iterator[tuple[Cell, ...]]:
    most = max((row.median for _, row in rates.values()), default=0.0)
    none = rates[0][1] if 0 in rates else None
    for name, (count, (params, row)) in zip(_names(kind, rates), rates.items(), strict=False):
        star = STAR if count == recommended else ""
        times = ratio(row, none) if none and params in in_turn else "a first look only"
        yield name, star, str(count), Bar(value=row.median, most=most), number(row.median), times
    if recommended is not None and recommended not in rates:
        yield "", STAR, str(recommended), "", "", "not measured in this probe"


def _names(kind: str, rates: Rates) -> Iterator[str]:
    steps = [f"step {number(params.step_ms)} ms" for params, _ in rates.values() if params.step_ms]
    return chain([DATASET if kind == "dataset" else kind], steps[:1], repeat(""))
