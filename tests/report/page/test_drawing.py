"""Pictures as SVG: places within the picture, whiskers where the interval is, and names that say the data."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.page.profiles import Parsed

from gputune.report.page import bars, dots, lines
from gputune.report.page.markup import Markup, element, escaped
from gputune.report.page.scale import scale_of
from gputune.report.page.svg import tick_text
from gputune.report.pictures import Bars, Dots, Lines, Mark

ANY = st.floats(allow_nan=False, allow_infinity=False)
SOME = st.lists(ANY, max_size=20)
MARKS = st.lists(
    st.builds(Mark, name=st.text(max_size=9), value=ANY, interval=st.none() | st.tuples(ANY, ANY)),
    min_size=1,
    max_size=20,
).map(tuple)


def fast(name, value, low, high, **more):
    return Mark(name=name, value=value, interval=(low, high), **more)


@given(SOME, ANY, st.booleans(), st.booleans())
def test_every_value_has_a_place_in_the_picture(values, value, from_zero, near):
    scale = scale_of(values, 10, 300, from_zero=from_zero, near=near)
    assert 10 <= scale(value) <= 300
    ticks = scale.ticks()
    assert len(ticks) <= 8
    assert all(math.isfinite(tick) and 10 <= scale(tick) <= 300 for tick in ticks)


@given(st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=2), st.booleans())
def test_a_larger_value_lies_further_on(values, near):
    scale = scale_of(values, 0, 300, near=near)
    places = [scale(value) for value in sorted(values)]
    assert places == sorted(places)


@pytest.mark.slow
@given(MARKS)
def test_whatever_is_drawn_is_whole_and_within_the_picture(marks):
    for drawn in (
        bars.draw(Bars(unit="x", marks=marks, base=1.0), "t"),
        dots.draw(Dots(unit="x", rows={"a": marks, "b": marks}), "t"),
        lines.draw(Lines(across="x", unit="y", lines={"a": marks}, from_zero=False), "t"),
    ):
        assert Parsed(drawn).faults == []
        assert not re.search(r"\b(nan|inf)\b", re.sub(r"<(title|text).*?</\1>|aria-label=\"[^\"]*\"", "", drawn))


def test_a_bar_reaches_to_its_value_and_its_whisker_over_the_interval():
    drawn = bars.draw(Bars(unit="TFLOP/s", marks=(fast("tf32", 100, 90, 102), fast("float32", 50, 50, 50))), "Matmul")
    widths = [float(one) for one in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    low, high = re.findall(r'd="M([\d.]+) [\d.]+v6M[\d.]+ [\d.]+H([\d.]+)', drawn)[0]
    assert float(low) == pytest.approx(0.9 * widths[0], abs=0.2)
    assert float(high) == pytest.approx(1.02 * widths[0], abs=0.2)
    assert 'aria-label="Matmul. TFLOP/s: tf32 100 (90.0 to 102); float32 50.0 (50.0 to 50.0)"' in drawn
    assert "<title>tf32: 100 (90.0 to 102) TFLOP/s</title>" in drawn


def test_what_is_recommended_and_what_is_refused_is_marked():
    marks = (fast("bfloat16", 2, 1.9, 2.1, chosen=True), Mark(name="float16", value=2.2, refused=True))
    drawn = bars.draw(Bars(unit="times", marks=marks, base=1.0), "Steps")
    assert "\u2605 2.00" in drawn
    assert "float16, refused" in drawn
    assert "bfloat16 2.00 (1.90 to 2.10), recommended" in drawn
    assert drawn.count('class="base"') == 2


def test_dots_of_one_row_lie_on_one_line_each_series_with_a_shape_of_its_own():
    rows = {"64 x 1024": (Mark(name="default", value=200.0), Mark(name="flash", value=100.0))}
    drawn = dots.draw(Dots(unit="TFLOP/s", rows=rows), "Attention")
    places = [float(one) for one in re.findall(r'transform="translate\(([\d.]+) ', drawn)[2:]]
    assert places[0] - 8 == pytest.approx(2 * (places[1] - 8), abs=0.3)
    assert 'class="mark s0"' in drawn
    assert 'class="mark s1"' in drawn
    assert 'aria-label="Attention. TFLOP/s. 64 x 1024: default 200; flash 100"' in drawn


def test_values_far_apart_have_a_logarithmic_scale():
    assert not scale_of([1, 19], 0, 100).logarithmic
    assert scale_of([1, 21], 0, 100).logarithmic
    assert not scale_of([1, 21], 0, 100, near=True).logarithmic


def test_the_band_is_drawn_with_the_line_that_is_held_against_it():
    marks = tuple(Mark(name=str(part), value=2.0 - part / 10) for part in (1, 2, 10))
    band = {"1": (1.8, 2.1), "2": (1.7, 2.0), "10": (0.9, 1.2)}
    drawn = lines.draw(
        Lines(across="part", unit="loss", lines={"tuned": marks}, band=band, from_zero=False), "Mean loss"
    )
    assert drawn.count('class="band"') == 1
    assert "By part: tuned, loss: 1 1.90; 2 1.80; 10 1.00. The band that it is held against, 1: 1.8 to 2.1" in drawn
    places = re.findall(r'class="tick middle">(\d+)<', drawn)
    assert places == ["1", "2", "10"], "numbers are in the order of their size"


def test_numbers_of_an_axis_are_short():
    assert [tick_text(value) for value in (0, 0.25, 500, 5000, 15000, 200000, 2e6, 3e7)] == [
        "0", "0.25", "500", "5000", "15k", "200k", "2M", "30M",
    ]  # fmt: skip


@given(st.text())
def test_text_is_never_markup(text):
    drawn = element("p", text, title=text)
    parsed = Parsed(drawn)
    assert [one.tag for one in parsed.nodes] == ["p"]
    assert set(parsed.nodes[0].attributes) == {"title"}
    assert escaped(Markup("<b>")) == "<b>"
