"""A chart of loading by number of workers, from measurements."""

from dataclasses import replace

from making import row
from recorded import facts_of

from gputune.probing import recommending
from gputune.probing.standing import Incumbent
from gputune.report import loading_charts


def synthetic(kind, **rates):
    """Samples per second by number of workers: `w4=380.0`."""
    return [row("dataloader", "throughput", rate, kind=kind, workers=int(name[1:])) for name, rate in rates.items()]


def own(rates, kind="dataset", **params):
    rows = [row("dataset", "throughput", rate, kind=kind, workers=n, batch=8, **params) for n, rate in rates.items()]
    return [*rows, row("dataset", "batch_bytes", 1e6, batch=8)]


def short(rows):
    return [replace(one, samples=one.samples[:2]) for one in rows]


def charts(measurements, standing=recommending.NOTHING_STANDS):
    """Those of a probe with these rows."""
    profile = recommending.profile_of(facts_of(), measurements, "cuda:0", created="2026-11-23", standing=standing)
    return list(loading_charts.workers(profile))


def lines(measurements):
    """Those of all charts, without the bars."""
    return [(*line[:3], *line[4:]) for chart in charts(measurements) for line in chart.rows]


def test_each_kind_of_samples_has_a_star_on_what_is_recommended():
    found = [
        *synthetic("waiting", w0=10.0, w16=160.0),
        *synthetic("memory", w0=1000.0, w4=20.0),
        *synthetic("decoding", w4=385.0, w0=100.0, w8=380.0),
    ]
    assert lines(found) == [
        ("decoding", "", "0", "100", "1x"),
        ("", "", "4", "386", "3.85x (3.85-3.85)"),
        ("", "*", "8", "381", "3.80x (3.80-3.80)"),
        ("memory", "*", "0", "1004", "1x"),
        ("", "", "4", "20.1", "0.0200x (0.0200-0.0200)"),
        ("waiting", "", "0", "10.0", "1x"),
        ("", "*", "16", "161", "16.0x (16.0-16.0)"),
    ]


def test_the_dataset_comes_first_and_has_the_only_star_beside_synthetic_samples():
    found = [*synthetic("decoding", w0=100.0, w4=380.0), *own({0: 100.0, 2: 200.0})]
    assert [line[:3] for line in lines(found)] == [
        ("your dataset", "", "0"),
        ("", "*", "2"),
        ("decoding", "", "0"),
        ("", "", "4"),
    ]


def test_each_chart_says_which_number_has_the_star():
    of_both = [*synthetic("decoding", w0=100.0, w4=380.0), *own({0: 100.0, 2: 200.0})]
    assert [chart.star for chart in charts(of_both)] == ["the fewest within 3 % of the best", ""]
    assert charts(synthetic("decoding", w0=100.0, w4=380.0))[0].star == "the most within 30 % of the best that gain"


def test_what_stands_from_an_earlier_probe_has_the_star_and_is_of_no_rule():
    standing = {"": {"dataloader_workers": Incumbent(value=4, since="2026-11-20")}}
    [chart] = charts(synthetic("decoding", w0=100.0, w4=380.0, w8=385.0), standing)
    assert [(line[1], line[2]) for line in chart.rows] == [("", "0"), ("*", "4"), ("", "8")]
    assert chart.star == "recommended"


def test_what_stands_and_was_not_measured_has_a_line_of_its_own():
    standing = {"": {"dataloader_workers": Incumbent(value=16, since="2026-11-20")}}
    [chart] = charts(synthetic("decoding", w0=100.0, w8=380.0), standing)
    assert [(line[1], line[2]) for line in chart.rows] == [("", "0"), ("", "8"), ("*", "16")]
    assert chart.rows[-1][-1] == "not measured in this probe"


def test_what_was_measured_beside_others_has_no_star():
    busy = [replace(one, conditions={"other_cpus": 9.0}) for one in synthetic("decoding", w0=100.0, w4=140.0)]
    [chart] = charts(busy)
    assert [line[1] for line in chart.rows] == ["", ""]
    assert chart.star == ""


def test_rows_of_a_first_look_have_a_rate_and_say_so_but_neither_a_ratio_nor_a_star():
    found = synthetic("decoding", w0=100.0, w4=380.0) + short(synthetic("decoding", w2=190.0, w8=900.0))
    assert lines(found) == [
        ("decoding", "", "0", "100", "1x"),
        ("", "", "2", "190", "a first look only"),
        ("", "*", "4", "381", "3.80x (3.80-3.80)"),
        ("", "", "8", "900", "a first look only"),
    ]


def test_what_was_made_without_handing_it_over_is_left_out():
    found = [*own({0: 100.0, 8: 800.0}, sent=False), *own({0: 100.0, 2: 200.0})]
    assert [line[2] for line in lines(found)] == ["0", "2"]


def test_the_consumers_step_stands_below_the_dataset_and_what_is_recommended_keeps_it_fed():
    step = {"step_ms": 50.0}  # 160 samples/s in batches of 8
    found = own({0: 80.0, 2: 159.0, 4: 160.0}, **step)
    assert [line[:3] for line in lines(found)] == [("your dataset", "", "0"), ("step 50.0 ms", "*", "2"), ("", "", "4")]


def test_a_dataset_that_every_worker_yields_the_whole_of_has_one_line():
    assert lines(own({0: 100.0}, same_samples=True)) == [("your dataset", "*", "0", "100", "1x")]


def test_rows_that_no_bench_writes_or_of_other_options_are_left_out():
    found = [
        row("dataloader", "throughput", 1.0),
        row("dataloader", "throughput", 1.0, kind="strange", workers=4),
        row("dataloader", "throughput", 1.0, kind="prefetch", workers=4, prefetch_factor=2),
        row("dataset", "throughput", 1.0, kind="dataset", workers=4, batch="x"),
    ]
    assert charts(found) == []


def test_with_no_workers_timed_roughly_only_there_are_no_ratios_and_no_stars():
    found = short(synthetic("decoding", w0=100.0)) + synthetic("decoding", w2=190.0, w4=380.0)
    assert [line[1:2] + line[4:] for line in lines(found)] == [("", "1x"), ("", ""), ("", "")]


def test_what_was_hardly_measured_has_no_star():
    assert lines(short(own({0: 100.0, 4: 380.0})))[1][1] == ""
    assert lines(synthetic("decoding", w0=100.0)) == [("decoding", "", "0", "100", "1x")]
