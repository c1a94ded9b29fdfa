"""Charts of matmuls: dtypes, the peak, the precision that FP32 really runs in, alignment, and the user's own shapes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gputune.measurement import Measurement
from gputune.report.charts import Bar, Cell, Chart, number, rate, ratio, rows
from gputune.report.pictures import Bars, Dots, Lines, Mark, mark, scaled
from gputune.settings import dimension_multiple
from gputune.settings.matmul_precision import TF32_ERROR

Rows = Mapping[str, Measurement]
DIMENSIONS = ("N", "K", "M")
_TF32_ERRORS = (1e-4, 1e-3)
_PLAIN = ({"found"}, {"found", "on", "off"}, {"on", "off"})
"""Sets of flags for which one line is enough, if every operation runs as its flags say."""


def dtypes(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """One square matmul in each dtype."""
    speeds = {str(row.params["dtype"]): row for row in rows(measurements, "precision throughput", "dtype")}
    errors = {str(row.params["dtype"]): row for row in rows(measurements, "precision relative_error", "dtype")}
    if not speeds:
        return
    most = max(row.median for row in speeds.values())
    yield Chart(
        title="Matmul by dtype (medians, with their 99 % intervals)",
        columns=("dtype", "", "TFLOP/s", "to FP32", "error"),
        rows=[
            (
                dtype,
                Bar(value=row.median, most=most),
                rate(row),
                ratio(row, speeds.get("float32")),
                f"{errors[dtype].median:.1e}" if dtype in errors else "",
            )
            for dtype, row in speeds.items()
        ],
        pictures=(Bars(unit="TFLOP/s", marks=tuple(mark(dtype, row) for dtype, row in speeds.items())),),
    )


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
            pictures=(Dots(unit="TFLOP/s", rows={dtype: _peaks(dtype, steady, burst, limit) for dtype in steady}),),
        )


def _peak(dtype: str, steady: Measurement, burst: Measurement | None, limit: Measurement | None) -> tuple[str, ...]:
    clock = steady.conditions.get("sm_clock_mhz")
    return (
        dtype,
        number(burst.median) if burst else "",
        number(steady.median),
        number(limit.median) if limit else "",
        f"{steady.median / limit.median:.0%}" if limit else "",
        number(clock) if clock else "",
        _sizes(steady),
    )


def _peaks(dtype: str, steady: Rows, burst: Rows, limit: Rows) -> tuple[Mark, ...]:
    named = {"steady": steady, "burst": burst, "theoretical": limit}
    return tuple(mark(name, found[dtype]) for name, found in named.items() if dtype in found)


def _sizes(row: Measurement) -> str:
    return " x ".join(str(row.params[name]) for name in "mnk")


def truth(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """The precision that FP32 operations really run in, judged by their error; one line where the flags say so too."""
    words: dict[str, dict[str, str]] = {}
    for row in rows(measurements, "precision relative_error", "operation flags"):
        override = row.params.get("override")
        under = f"{row.params['flags']}" if override is None else f"={override} {row.params['flags']}"
        words.setdefault(str(row.params["operation"]), {})[under] = _runs_in(row.median)
    columns = list(dict.fromkeys(under for found in words.values() for under in found))
    if not columns:
        return
    if set(columns) in _PLAIN and _as_flags_say(words):
        said = "as the flags say" if {"on", "off"} <= set(columns) else ""
        line = "; ".join(filter(None, (said, _found(words))))
        yield Chart(title="What FP32 really runs in", columns=("",), rows=[(line,)])
        return
    overridden = " (=0, =1: NVIDIA_TF32_OVERRIDE)" if any(under.startswith("=") for under in columns) else ""
    yield Chart(
        title=f"What FP32 really runs in, by TF32's flags{overridden}",
        columns=("operation", *columns),
        rows=[(operation, *(found.get(under, "") for under in columns)) for operation, found in words.items()],
    )


def _runs_in(error: float) -> str:
    """The precision that an error shows: FP32's is near 1e-7, TF32's near 3e-4. Any other error becomes a number."""
    if error < TF32_ERROR:
        return "FP32"
    if error > _TF32_ERRORS[1]:
        return "lower"
    return "TF32" if error >= _TF32_ERRORS[0] else f"{error:.0e}"


def _as_flags_say(words: dict[str, dict[str, str]]) -> bool:
    expected = {"on": "TF32", "off": "FP32"}
    return all(expected.get(flags, word) == word for found in words.values() for flags, word in found.items())


def _found(words: dict[str, dict[str, str]]) -> str:
    by_word: dict[str, list[str]] = {}
    for operation, found in words.items():
        if "found" in found:
            by_word.setdefault(found["found"], []).append(operation)
    said = "; ".join(f"{', '.join(operations)} in {word}" for word, operations in by_word.items())
    return f"found: {said}" if said else ""


def alignment(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """The speed at each multiple beside the best. The power of two itself, whose last tile is full, is left out."""
    known = rows(measurements, "matmul_alignment throughput", "dtype product dim", "size multiple")
    groups = dict.fromkeys(
        (str(row.params["dtype"]), str(row.params["product"]), str(row.params["dim"])) for row in known
    )
    found = {
        (dtype, product, dim): dimension_multiple.by_multiple(known, dtype, dim, product)
        for dtype, product, dim in groups
        if dim in DIMENSIONS
    }
    shares = {group: _shares(by_multiple) for group, by_multiple in found.items()}
    forward = {(dtype, dim): found for (dtype, product, dim), found in shares.items() if product == "forward" and found}
    gradients = {group: found for group, found in shares.items() if group[1] != "forward" and found}
    if forward:
        yield replace(_forward(forward), pictures=_curves(found, forward=True))
    if gradients:
        yield replace(_gradients(gradients), pictures=_curves(found, forward=False))


def _shares(by_multiple: dict[int, Any]) -> dict[int, float]:
    most = max((row.median for row in by_multiple.values()), default=0)
    return {multiple: row.median / most for multiple, row in sorted(by_multiple.items())} if most > 0 else {}


def _curves(found: Mapping[tuple[str, str, str], dict[int, Measurement]], forward: bool) -> tuple[Lines, ...]:
    """For each dtype and product a picture with a line for each dimension, in % of the best."""
    pictures: dict[str, dict[str, tuple[Mark, ...]]] = {}
    for (dtype, product, dim), by_multiple in found.items():
        best = max((row.median for row in by_multiple.values()), default=0)
        if (product == "forward") == forward and best > 0:
            name = dtype if forward else f"{dtype}, {product}"
            marks = (scaled(mark(str(multiple), row), 100 / best) for multiple, row in sorted(by_multiple.items()))
            pictures.setdefault(name, {})[dim] = tuple(marks)
    return tuple(
        Lines(name=name, across="multiple", unit="% of the best", lines=lines) for name, lines in pictures.items()
    )


def _forward(groups: dict[tuple[str, str], dict[int, float]]) -> Chart:
    dims = [dim for dim in DIMENSIONS if any(dim == other for _, other in groups)]
    lines: list[tuple[Cell, ...]] = []
    for dtype in dict.fromkeys(dtype for dtype, _ in groups):
        by_dim = [groups.get((dtype, dim), {}) for dim in dims]
        for place, multiple in enumerate(sorted({multiple for shares in by_dim for multiple in shares})):
            cells = (cell for shares in by_dim for cell in _share(shares.get(multiple)))
            lines.append(("" if place else dtype, str(multiple), *cells))
    return Chart(
        title=f"Matmul whose {' or '.join(dims)} is a multiple of so much, beside the best",
        columns=("dtype", "multiple", *(name for dim in dims for name in (dim, f"{dim} %"))),
        numbers=("multiple", *(f"{dim} %" for dim in dims)),
        rows=lines,
    )


def _share(share: float | None) -> tuple[Cell, Cell]:
    return ("", "") if share is None else (Bar(value=share, most=1), f"{100 * share:.0f}")


def _gradients(found: dict[tuple[str, str, str], dict[int, float]]) -> Chart:
    multiples = sorted({multiple for shares in found.values() for multiple in shares})
    columns = tuple(str(multiple) for multiple in multiples)
    return Chart(
        title="The same of a linear layer's gradients, in % of the best, by multiple",
        columns=("dtype", "product", "dim", *columns),
        numbers=columns,
        rows=[
            (*group, *(f"{100 * shares[multiple]:.0f}" if multiple in shares else "" for multiple in multiples))
            for group, shares in found.items()
        ],
    )


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
                Bars(name=shape, unit="TFLOP/s", marks=tuple(mark(_sizes(row), row) for row in found))
                for shape, found in groups.items()
            ),
        )
