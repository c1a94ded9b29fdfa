"""The chart of all GPUs at once."""

from dataclasses import replace

from making import row

from gputune.report.charts import Bar
from gputune.report.device_charts import side_by_side


def steady(device, metric, rate, run=1, **conditions):
    return replace(row("side_by_side", metric, rate, device, run=run), conditions=conditions)


def test_each_gpu_is_a_line_with_its_clock_power_and_memory():
    [chart] = side_by_side([
        steady("cuda:0", "matmul", 600.0, sm_clock_mhz=1755.0, power_watts=698.0),
        steady("cuda:0", "bandwidth", 4000.0),
        steady("cuda:1", "matmul", 300.0, sm_clock_mhz=900.0, power_watts=310.0),
    ])  # fmt: skip
    assert chart.columns == ("GPU", "", "TFLOP/s", "MHz", "W", "memory GB/s")
    assert chart.rows == [
        ("cuda:0", Bar(value=602.0999999999999, most=602.0999999999999), "602", "1755", "698", "4014"),
        ("cuda:1", Bar(value=301.04999999999995, most=602.0999999999999), "301", "900", "310", ""),
    ]


def test_of_two_runs_the_last_is_shown():
    [chart] = side_by_side([steady("cuda:0", "matmul", 300.0), steady("cuda:0", "matmul", 600.0, run=2)])
    assert [line[2] for line in chart.rows] == ["602"]
