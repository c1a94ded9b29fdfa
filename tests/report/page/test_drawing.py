"""Pictures as SVG: places within the picture, whiskers where the interval is, and names that say the data."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.page.profiles import Parsed

from gputune.report.charts import Mark, Picture
from gputune.report.page.drawing import draw, scale_of, tick_text
from gputune.report.page.markup import Markup, element, escaped

ANY = st.floats(allow_nan=False, allow_infinity=False)
SOME = st.lists(ANY, max_size=20)
MARKS = st.lists(
    st.builds(Mark, name=st.text(max_size=9), value=ANY, interval=st.none() | st.tuples(ANY, ANY)),
    min_size=1,
    max_size=20,
).map(tuple)


def fast(value, low, high, **more):
    return (Mark(value=value, interval=(low, high), **more),)


@given(SOME, ANY, st.sampled_from([20.0, math.inf]))
def test_every_value_has_a_place_in_the_picture(values, value, far):
    scale = scale_of(values, 10, 300, far=far)
    assert 10 <= scale(value) <= 300
    ticks = scale.ticks()
    assert len(ticks) <= 7
    assert all(math.isfinite(tick) and 10 <= scale(tick) <= 300 for tick in ticks)


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=2), st.sampled_from([20.0, math.inf]))
def test_a_larger_value_lies_further_on(values, far):
    places = [scale_of(values, 0, 300, far=far)(value) for value in sorted(values)]
    assert places == sorted(places)


@pytest.mark.slow
@given(MARKS)
def test_whatever_is_drawn_is_whole_and_within_the_picture(marks):
    for picture in (
        Picture(unit="x", rows={str(place): (mark,) for place, mark in enumerate(marks)}, base=1.0),
        Picture(unit="x", rows={"a": marks, "b": marks}),
    ):
        drawn = draw(picture, "t")
        assert Parsed(drawn).faults == []
        assert not re.search(r"\b(nan|inf)\b", re.sub(r"<(title|text).*?</\1>|aria-label=\"[^\"]*\"", "", drawn))


def test_a_bar_reaches_to_its_value_and_its_whisker_over_the_interval():
    rows = {"tf32": fast(100, 90, 102), "float32": fast(50, 50, 50)}
    drawn = draw(Picture(unit="TFLOP/s", rows=rows), "Matmul")
    widths = [float(one) for one in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    low, high = re.findall(r'd="M([\d.]+) [\d.]+v6M[\d.]+ [\d.]+H([\d.]+)', drawn)[0]
    assert float(low) == pytest.approx(0.9 * widths[0], abs=0.2)
    assert float(high) == pytest.approx(1.02 * widths[0], abs=0.2)
    assert 'aria-label="Matmul. TFLOP/s: tf32 100 (90.0 to 102); float32 50.0 (50.0 to 50.0)"' in drawn
    assert "<title>tf32: 100 (90.0 to 102) TFLOP/s</title>" in drawn


def test_what_is_recommended_and_what_is_refused_is_marked():
    rows = {"bfloat16": fast(2, 1.9, 2.1, chosen=True), "float16": (Mark(value=2.2, refused=True),)}
    drawn = draw(Picture(unit="times", rows=rows, base=1.0), "Steps")
    assert "\u2605 2.00" in drawn
    assert "float16, refused" in drawn
    assert "bfloat16 2.00 (1.90 to 2.10), recommended" in drawn
    assert drawn.count('class="base"') == 2


def test_dots_of_one_row_lie_on_one_line_each_series_with_a_shape_of_its_own():
    rows = {"64 x 1024": (Mark(name="default", value=200.0), Mark(name="flash", value=100.0))}
    drawn = draw(Picture(unit="TFLOP/s", rows=rows), "Attention")
    places = [float(one) for one in re.findall(r'transform="translate\(([\d.]+) ', drawn)[2:]]
    assert places[0] - 8 == pytest.approx(2 * (places[1] - 8), abs=0.3)
    assert 'class="mark s0"' in drawn
    assert 'class="mark s1"' in drawn
    assert 'aria-label="Attention. TFLOP/s: 64 x 1024 default 200; 64 x 1024 flash 100"' in drawn


def test_dots_far_apart_have_a_logarithmic_scale_unless_one_is_negative():
    assert not scale_of([1, 19], 0, 100, far=20).logarithmic
    assert scale_of([1, 21], 0, 100, far=20).logarithmic
    assert not scale_of([-1, 21], 0, 100, far=20).logarithmic
    assert scale_of([-1, 1], 0, 100)(0.0) == pytest.approx(50)


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


def test_long_names_keep_what_differs():
    names = ("bfloat16 + compile + fused_optimizer + tf32", "bfloat16 + compile + fused_optimizer + tf32 + 8 workers")
    drawn = draw(Picture(unit="times as fast", rows={name: fast(1.5, 1.4, 1.6) for name in names}, base=1.0), "steps")
    labels = re.findall(r'<text [^>]*class="name"[^>]*>([^<]*)</text>', drawn)
    assert len(set(labels)) == 2
    assert all("…" in label for label in labels)
    assert labels[0].endswith("tf32")
    assert labels[1].endswith("8 workers")
