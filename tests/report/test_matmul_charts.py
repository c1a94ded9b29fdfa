"""Charts of matmuls, from measurements."""

from dataclasses import replace

import pytest
from making import row

from gputune.report import matmul_charts
from gputune.report.charts import Bar

SECTIONS = tuple(getattr(matmul_charts, name) for name in ("dtypes", "peak", "truth", "alignment", "shapes"))


def one(section, measurements):
    (chart,) = section(measurements)
    return chart


@pytest.mark.parametrize("section", SECTIONS)
def test_rows_without_their_params_are_left_out(section):
    benches = (
        "precision throughput", "precision relative_error", "matmul_peak steady", "matmul_peak burst",
        "matmul_alignment throughput", "matmul_shapes throughput",
    )  # fmt: skip
    bare = [row(*bench.split(), 1.0, **params) for bench in benches for params in ({}, {"dtype": 5}, {"flags": "on"})]
    assert list(section(bare)) == []


def precision(dtype, rate, error):
    return [row("precision", "throughput", rate, dtype=dtype), row("precision", "relative_error", error, dtype=dtype)]


def test_dtypes_stand_beside_fp32_with_intervals_and_errors():
    chart = one(matmul_charts.dtypes, [*precision("float32", 40.0, 4e-7), *precision("float8", 1200.0, 4e-2)])
    assert chart.rows == [
        ("float32", Bar(value=pytest.approx(40.14), most=pytest.approx(1204.2)), "40.1 (40.0-40.3)", "1x", "4.0e-07"),
        ("float8", Bar(value=pytest.approx(1204.2), most=pytest.approx(1204.2)), "1204 (1200-1210)",
         "30.0x (30.0-30.0)", "4.0e-02"),
    ]  # fmt: skip


def test_a_dtype_without_fp32_and_error_is_still_shown():
    chart = one(matmul_charts.dtypes, [row("precision", "throughput", 300.0, dtype="tf32")])
    assert chart.rows[0][2:] == ("301 (300-302)", "", "")


def test_the_peak_has_its_share_of_the_theoretical_one_and_its_shape():
    shape = {"m": 10752, "n": 15360, "k": 12288}
    steady = row("matmul_peak", "steady", 690.0, dtype="bfloat16", **shape)
    measured = [
        replace(steady, conditions={"sm_clock_mhz": 1425.0}),
        row("matmul_peak", "burst", 812.0, dtype="bfloat16", **shape),
        replace(row("matmul_peak", "theoretical", 1.0, dtype="bfloat16"), samples=(770.5,)),
        row("matmul_peak", "steady", 100.0, dtype="tf32", **shape),
    ]
    assert one(matmul_charts.peak, measured).rows == [
        ("bfloat16", "815", "692", "770", "90%", "1425", "10752 x 15360 x 12288"),
        ("tf32", "", "100", "", "", "", "10752 x 15360 x 12288"),
    ]


def errors(**found):
    return [
        row("precision", "relative_error", error, operation=operation, flags=flags)
        for operation, all_flags in found.items()
        for flags, error in all_flags.items()
    ]


def test_what_fp32_runs_in_is_told_by_its_error_under_each_flag():
    found = errors(matmul={"found": 3e-4, "on": 3e-4, "off": 2e-7}, conv={"found": 2e-2, "on": 2e-5})
    chart = one(matmul_charts.truth, found)
    assert chart.columns == ("operation", "found", "on", "off")
    assert chart.rows == [("matmul", "TF32", "TF32", "FP32"), ("conv", "lower", "2e-05", "")]


def test_rows_under_an_override_which_profiles_of_before_have_are_left_out():
    zero = row("precision", "relative_error", 2e-7, operation="matmul", flags="on", override="0")
    assert list(matmul_charts.truth([zero])) == []


def aligned(multiple, rate, size=4096, dim="N", product="forward", **more):
    """As fast as `rate` for each of the size's elements."""
    return row(
        "matmul_alignment", "throughput", rate * size,
        dtype="bfloat16", dim=dim, product=product, size=size, multiple=multiple, **more,
    )  # fmt: skip


def test_alignment_is_told_by_runs_in_a_second_beside_the_best():
    of_k = [aligned(2, 2.0, 4098, dim="K"), aligned(8, 2.0, 4104, dim="K")]
    found = [aligned(8, 4.0, 4104), aligned(1, 1.0, 4097), *of_k]
    chart = one(matmul_charts.alignment, found)
    assert chart.columns == ("dtype", "multiple", "N", "N %", "K", "K %")
    assert chart.rows == [
        ("bfloat16", "1", Bar(value=pytest.approx(25), most=100), "25", "", ""),
        ("", "2", "", "", Bar(value=pytest.approx(100), most=100), "100"),
        ("", "8", Bar(value=pytest.approx(100), most=100), "100", Bar(value=pytest.approx(100), most=100), "100"),
    ]


def test_a_size_of_full_tiles_is_no_multiple_among_others():
    chart = one(matmul_charts.alignment, [aligned(8, 1.0), aligned(128, 9.0, full_tiles=True)])
    assert [line[1] for line in chart.rows] == ["8"]
    assert list(matmul_charts.alignment([aligned(128, 9.0, full_tiles=True)])) == []


def test_gradients_are_left_out():
    found = [aligned(1, 1.0, product="grad_weight", dim="M"), aligned(64, 4.0, product="grad_weight", dim="M")]
    assert list(matmul_charts.alignment(found)) == []


def test_alignment_of_another_versions_rows_is_left_out():
    old = row("matmul_alignment", "throughput", 1.0, dtype="tf32", dim="N", size=4097, multiple=1)
    strange = aligned(1, 1.0, dim="NK")
    assert list(matmul_charts.alignment([old, strange])) == []


def test_own_shapes_stand_above_their_padded_variants():
    given = {"shape": "512 x 50257 x 768 bfloat16", "dtype": "bfloat16", "m": 512, "k": 768}
    found = [row("matmul_shapes", "throughput", rate, n=n, **given) for n, rate in ((50257, 100.0), (50264, 600.0))]
    assert one(matmul_charts.shapes, found).rows == [
        ("512 x 50257 x 768 bfloat16", "100 (100-101)", "1x"),
        ("  512 x 50264 x 768", "602 (600-605)", "6.00x (6.00-6.00)"),
    ]


def steady(device, metric, rate, run=1, **conditions):
    return replace(row("side_by_side", metric, rate, device, run=run), conditions=conditions)


def test_each_gpu_is_a_line_with_its_clock_power_and_memory():
    [chart] = matmul_charts.side_by_side([
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
    [chart] = matmul_charts.side_by_side([steady("cuda:0", "matmul", 300.0), steady("cuda:0", "matmul", 600.0, run=2)])
    assert [line[2] for line in chart.rows] == ["602"]
