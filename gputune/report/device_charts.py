"""Charts of what was measured on all GPUs of a node at once."""

from collections.abc import Iterator, Sequence

from gputune.measurement import Measurement
from gputune.report.charts import Bar, Cell, Chart, number, rows
from gputune.report.pictures import Bars, mark


def side_by_side(measurements: Sequence[Measurement]) -> Iterator[Chart]:
    """Each GPU's steady matmul and memory bandwidth, as measured last, with the clock and power that it had."""
    # A second run's rows follow the first's, so the last one of a device is kept.
    matmul = {row.device: row for row in rows(measurements, "side_by_side matmul")}
    copies = {row.device: row for row in rows(measurements, "side_by_side bandwidth")}
    most = max((row.median for row in matmul.values()), default=0.0)
    lines: list[tuple[Cell, ...]] = [
        (device, Bar(value=row.median, most=most), number(row.median), _condition(row, "sm_clock_mhz"),
         _condition(row, "power_watts"), number(copies[device].median) if device in copies else "")
        for device, row in matmul.items()
    ]  # fmt: skip
    if lines:
        columns = ("GPU", "", "TFLOP/s", "MHz", "W", "memory GB/s")
        title = "All GPUs at once, in steady load: matmul and memory"
        pictures = tuple(
            Bars(name=name, unit=unit, marks=tuple(mark(device, row) for device, row in found.items()))
            for name, unit, found in (("matmul", "TFLOP/s", matmul), ("memory", "GB/s", copies))
            if found
        )
        yield Chart(title=title, columns=columns, rows=lines, numbers=columns[2:], pictures=pictures)


def _condition(row: Measurement, name: str) -> str:
    return f"{row.conditions[name]:.0f}" if name in row.conditions else ""
