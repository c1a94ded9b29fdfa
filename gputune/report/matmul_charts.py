"""Charts of matmuls: all GPUs at once, dtypes, the peak, what FP32 really runs in, alignment, and the user's shapes."""

from collections.abc import Iterator, Mapping, Sequence

from gputune.advice import dimension_multiple
from gputune.advice.matmul_precision import TF32_ERROR
from gputune.measurement import Measurement
from gputune.report.charts import Bar, Cell, Chart, Mark, Picture, bars, mark, number, rate, ratio, rows

Rows = Mapping[str, Measurement]
DIMENSIONS = ("N", "K", "M")
_TF32_ERRORS = (1e-4, 1e-3)


def side_by_side(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """Each GPU's steady matmul and memory bandwidth, as measured last, with the clock and power that it had."""
    # A second run's rows follow the first's, so the last one of a device is kept.
    matmul = {row.device: row for row in rows(measurements, "side_by_side matmul")}
    copies = {row.device: row for row in rows(measurements, "side_by_side bandwidth")}
    if matmul:
        most = max(row.median for row in matmul.values())
        yield Chart(
            title="All GPUs at once, in steady load: matmul and memory",
            columns=("GPU", "", "TFLOP/s", "MHz", "W", "memory GB/s"),
            numbers=("TFLOP/s", "MHz", "W", "memory GB/s"),
            rows=[
                (device, Bar(value=row.median, most=most), number(row.median), _condition(row, "sm_clock_mhz"),
                 _condition(row, "power_watts"), number(copies[device].median) if device in copies else "")
                for device, row in matmul.items()
            ],
            pictures=(bars("TFLOP/s", matmul, "matmul"), bars("GB/s", copies, "memory")),
        )  # fmt: skip


def _condition(row: Measurement, name: str) -> str:
    return f"{row.conditions[name]:.0f}" if name in row.conditions else ""


def dtypes(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    speeds = {str(row.params["dtype"]): row for row in rows(measurements, "precision throughput", "dtype")}
    errors = {str(row.params["dtype"]): row for row in rows(measurements, "precision relative_error", "dtype")}
    if not speeds:
        return
    most = max(row.median for row in speeds.values())
    yield Chart(
        title="Matmul by dtype (medians, with their 99 % intervals)",
        columns=("dtype", "", "TFLOP/s", "to FP32", "error"),
        rows=[
            (dtype, Bar(value=row.median, most=most), rate(row), ratio(row, speeds.get("float32")),
             f"{errors[dtype].median:.1e}" if dtype in errors else "")
            for dtype, row in speeds.items()
        ],
        pictures=(bars("TFLOP/s", speeds),),
    )  # fmt: skip


def peak(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """The fastest matmul that was found, cool and under load, and what share of the theoretical peak that is."""
    steady = {str(row.params["dtype"]): row for row in rows(measurements, "matmul_peak steady", "dtype", "m n k")}
    burst = {str(row.params["dtype"]): row for row in rows(measurements, "matmul_peak burst", "dtype")}
    limit = {str(row.params["dtype"]): row for row in rows(measurements, "matmul_peak theoretical", "dtype")}
    if steady:
        yield Chart(
            title="Peak of matmul in TFLOP/s; the theoretical one at the clock under load",
            columns=("dtype", "burst", "steady", "theoretical", "share", "MHz", "m x n x k"),
            numbers=("burst", "steady", "theoretical", "share", "MHz"),
            rows=[_peak(dtype, row, burst.get(dtype), limit.get(dtype)) for dtype, row in steady.items()],
            pictures=(Picture(unit="TFLOP/s", rows={dtype: _peaks(dtype, steady, burst, limit) for dtype in steady}),),
        )


def _peak(dtype: str, steady: Measurement, burst: Measurement | None, limit: Measurement | None) -> tuple[str, ...]:
    return (
        dtype, number(burst.median) if burst else "", number(steady.median), number(limit.median) if limit else "",
        f"{steady.median / limit.median:.0%}" if limit else "", _condition(steady, "sm_clock_mhz"), _sizes(steady),
    )  # fmt: skip


def _peaks(dtype: str, steady: Rows, burst: Rows, limit: Rows) -> tuple[Mark, ...]:
    named = {"steady": steady, "burst": burst, "theoretical": limit}
    return tuple(mark(found[dtype], name) for name, found in named.items() if dtype in found)


def _sizes(row: Measurement) -> str:
    return " x ".join(str(row.params[name]) for name in "mnk")


def truth(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """The precision that FP32 operations really run in, judged by their error, by TF32's flags."""
    words: dict[str, dict[str, str]] = {}
    for row in rows(measurements, "precision relative_error", "operation flags"):
        if "override" not in row.params:  # as in profiles of before
            words.setdefault(str(row.params["operation"]), {})[str(row.params["flags"])] = _runs_in(row.median)
    columns = list(dict.fromkeys(flags for found in words.values() for flags in found))
    if columns:
        yield Chart(
            title="What FP32 really runs in, by TF32's flags",
            columns=("operation", *columns),
            rows=[(operation, *(found.get(flags, "") for flags in columns)) for operation, found in words.items()],
        )


def _runs_in(error: float) -> str:
    """The precision that an error shows: FP32's is near 1e-7, TF32's near 3e-4. Any other error becomes a number."""
    if error < TF32_ERROR:
        return "FP32"
    if error > _TF32_ERRORS[1]:
        return "lower"
    return "TF32" if error >= _TF32_ERRORS[0] else f"{error:.0e}"


def alignment(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """The speed of forward passes at each multiple beside the best, without the power of two, which has full tiles."""
    known = rows(measurements, "matmul_alignment throughput", "dtype product dim", "size multiple")
    lines: list[tuple[Cell, ...]] = []
    pictures: list[Picture] = []
    dims = [dim for dim in DIMENSIONS if any(row.params["dim"] == dim for row in known)]
    for dtype in dict.fromkeys(str(row.params["dtype"]) for row in known):
        shares = {dim: _shares(dim, dimension_multiple.by_multiple(known, dtype, dim, "forward")) for dim in dims}
        multiples = sorted({multiple for found in shares.values() for multiple in found})
        if not multiples:
            continue
        marks: dict[str, tuple[Mark, ...]] = {}
        for place, multiple in enumerate(multiples):
            marks[str(multiple)] = tuple(found[multiple] for found in shares.values() if multiple in found)
            cells = (cell for found in shares.values() for cell in _share(found.get(multiple)))
            lines.append(("" if place else dtype, str(multiple), *cells))
        pictures.append(Picture(name=dtype, unit="% of the best", rows=marks))
    if lines:
        yield Chart(
            title=f"Matmul whose {' or '.join(dims)} is a multiple of so much, beside the best",
            columns=("dtype", "multiple", *(name for dim in dims for name in (dim, f"{dim} %"))),
            numbers=("multiple", *(f"{dim} %" for dim in dims)),
            rows=lines,
            pictures=tuple(pictures),
        )


def _shares(dim: str, by_multiple: Mapping[int, Measurement]) -> dict[int, Mark]:
    most = max((row.median for row in by_multiple.values()), default=0.0)
    return {multiple: mark(row, dim, 100 / most) for multiple, row in by_multiple.items()} if most > 0 else {}


def _share(share: Mark | None) -> tuple[Cell, Cell]:
    return ("", "") if share is None else (Bar(value=share.value, most=100), f"{share.value:.0f}")


def shapes(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """The user's own matmuls, each as it is and padded; the work counted is what was asked for."""
    groups: dict[str, list[Measurement]] = {}
    for row in rows(measurements, "matmul_shapes throughput", "shape dtype", "m n k"):
        groups.setdefault(str(row.params["shape"]), []).append(row)
    if groups:
        yield Chart(
            title="Your matmuls m x n x k, as they are and padded",
            columns=("matmul", "TFLOP/s", "to as it is"),
            rows=[
                (shape if row is found[0] else f"  {_sizes(row)}", rate(row), ratio(row, found[0]))
                for shape, found in groups.items()
                for row in found
            ],
            pictures=tuple(
                bars("TFLOP/s", {_sizes(row): row for row in found}, shape) for shape, found in groups.items()
            ),
        )
