"""What charts are made of: bars, numbers, ratios with their intervals, and the rows that are whole."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import profile, row

from gputune.report.chart_list import CHARTS, OF_CHOICES
from gputune.report.charts import Chart, bar, number, rate, ratio, rows

WIDTHS = st.integers(min_value=1, max_value=40)


@pytest.mark.parametrize(
    ("value", "text"),
    [(8, "████████"), (4, "████"), (4.125, "████▏"), (0.001, "▏"), (16, "████████"), (0, ""), (-1, "")],
)
def test_a_bar_is_drawn_to_an_eighth_of_a_character(value, text):
    assert bar(value, 8, 8) == text


@pytest.mark.parametrize(("encoding", "text"), [("ascii", "####"), ("no such encoding", "####"), ("utf-16", "████")])
def test_a_bar_is_of_number_signs_if_the_encoding_has_no_blocks(encoding, text):
    assert bar(4, 8, 8, encoding) == text


@given(st.floats(), st.floats(), WIDTHS, st.sampled_from(["utf-8", "ascii"]))
def test_whatever_is_above_zero_is_seen_and_stays_within_the_width(value, most, width, encoding):
    drawn = bar(value, most, width, encoding)
    assert 1 <= len(drawn) <= width if value > 0 and most > 0 else drawn == ""


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=2, max_size=2), WIDTHS)
def test_a_larger_value_has_no_shorter_bar(values, width):
    small, large = (bar(value, 1, width) for value in sorted(values))
    assert len(small) <= len(large)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.12, "0.120"), (8.3, "8.30"), (352.2, "352"), (999.7, "1000"), (4254.4, "4254"), (1e300, "1.00e+300")],
)
def test_numbers_have_three_digits_or_all_before_the_point(value, text):
    assert number(value) == text


def test_a_rate_has_its_interval_where_there_are_enough_samples():
    enough = row("conv", "throughput", 100.0)
    assert rate(enough) == "100 (100-101)"
    assert rate(replace(enough, samples=(100.0,))) == "100"


def test_a_ratio_has_its_interval_and_needs_pairs():
    base, twice = row("conv", "throughput", 100.0), row("conv", "throughput", 200.0)
    assert ratio(twice, base) == "2.00x (2.00-2.00)"
    assert ratio(base, base) == "1x"
    assert ratio(twice, None) == ""
    assert ratio(replace(twice, samples=(200.0,)), base) == ""


def test_rows_of_one_bench_and_metric_with_their_texts_and_counts_are_found():
    good = row("conv", "throughput", 1.0, dtype="x", size=8)
    odd = [{"dtype": 8}, {}, *({"size": size} for size in ("64", True, 0, -1, None, 10**400))]
    others = [replace(good, params={**good.params, **one} if one else {}) for one in odd]
    others += [replace(good, metric="relative_error"), replace(good, bench="attention")]
    assert rows([*others, good], "conv throughput", "dtype", "size") == [good]


def test_rates_of_zero_are_left_out_and_losses_are_not():
    none = replace(row("training_step", "final_loss", 1.0), samples=(0.0,))
    assert rows([none], "training_step final_loss") == [none]
    assert rows([replace(none, metric="throughput")], "training_step throughput") == []


def test_a_column_in_which_nothing_stands_is_left_out():
    rows = [("a", "", "1"), ("b", "", "")]
    filled = Chart(title="peaks", columns=("dtype", "MHz", "ms"), rows=rows, numbers=("MHz", "ms")).filled()
    assert filled.columns == ("dtype", "ms")
    assert filled.rows == [("a", "1"), ("b", "")]


@pytest.mark.parametrize("section", [section for group in CHARTS.values() for section in group])
def test_nothing_is_shown_of_what_was_not_measured(section):
    assert list(section([])) == []
    assert list(section([row("another_bench", "throughput", 1.0, kind="cheap", workers=0)])) == []


@pytest.mark.parametrize("section", OF_CHOICES.values())
def test_no_choice_is_shown_of_what_was_not_measured(section):
    assert list(section(profile())) == []
    rows = (row("another_bench", "throughput", 1.0, kind="cheap", workers=0),)
    assert list(section(profile(measurements=rows))) == []
