"""Charts of convolutions, attention, training steps and copies, from measurements."""

from dataclasses import replace

import pytest
from making import row
from recorded import facts_of

from gputune.probing import recommending
from gputune.probing.standing import Incumbent
from gputune.report import network_charts

TF32_GAINS = [
    row("precision", "throughput", 50.0, dtype="float32"),
    row("precision", "throughput", 300.0, dtype="tf32"),
    replace(row("precision", "relative_error", 1.0, dtype="tf32"), samples=(3e-4,)),
]


def training(measurements, standing=recommending.NOTHING_STANDS, matmuls=TF32_GAINS):
    """The charts of training steps of a probe with these rows, whose matmuls gain by TF32."""
    rows = [*measurements, *matmuls]
    profile = recommending.profile_of(facts_of(), rows, "cuda:0", created="2026-11-23", standing=standing)
    return network_charts.training(profile)


SECTIONS = (network_charts.convolutions, network_charts.attention, training)


def one(section, measurements):
    (chart,) = section(measurements)
    return chart


@pytest.mark.parametrize("section", SECTIONS)
def test_rows_without_their_params_or_of_unknown_names_are_left_out(section):
    strange = {"network": "mlp", "stage": "precision", "batch": 8, "precision": "int3"}
    metrics = ("throughput", "peak_memory", "final_loss")
    found = [
        *(row(bench, "throughput", 1.0) for bench in ("conv", "attention")),
        *(row("training_step", metric, 1.0, **params) for metric in metrics for params in ({}, strange)),
        row("training_step", "throughput", 1.0, network="[x]", stage="precision", batch=8, precision="tf32"),
    ]
    assert list(section(found)) == []


def conv(channels, rate, last, dtype="bfloat16", **more):
    params = {"dtype": dtype, "kernel": "3x3", "pass": "forward", "channels": channels, "channels_last": last, **more}
    return row("conv", "throughput", rate, **params)


def test_convolutions_are_ranked_in_each_dtype_with_both_formats_beside_each_other():
    found = [
        conv(64, 100.0, False), conv(64, 300.0, True), conv(128, 200.0, False), conv(128, 600.0, True),
        conv(3, 10.0, True, out=64), conv(256, 900.0, True, dtype="tf32"),
    ]  # fmt: skip
    lines = [(*line[:2], *line[3:]) for line in one(network_charts.convolutions, found).rows]
    assert lines == [
        ("bfloat16", "128", "201", "602", "3.00x (3.00-3.00)"),
        ("bfloat16", "64", "100", "301", "3.00x (3.00-3.00)"),
        ("bfloat16", "3 -> 64", "", "10.0", ""),
        ("tf32", "256", "", "903", ""),
    ]


def test_convolutions_of_other_kinds_are_no_part_of_the_ranking():
    others = ({"cudnn_benchmark": True}, {"kernel": "1x1"}, {"pass": "training"})
    assert list(network_charts.convolutions([conv(64, 1.0, True, **more) for more in others])) == []


def attention(backend, rate, **more):
    params = {"dtype": "bfloat16", "head": 64, "length": 4096, "causal": True, "backend": backend, **more}
    return row("attention", "throughput", rate, **params)


def test_back_ends_are_ranked_by_speed_beside_the_default():
    found = [attention("default", 300.0), attention("math", 30.0), attention("cudnn", 600.0), attention("flash", 150.0)]
    chart = one(network_charts.attention, found)
    assert "bfloat16, causal" in chart.title
    assert chart.rows == [
        ("64 x 4096", "cudnn 2.00x (2.00-2.00)", "flash 0.500x (0.500-0.500)"),
        ("301 TFLOP/s", "math 0.100x (0.100-0.100)", ""),
    ]


def test_back_ends_without_a_default_show_their_own_rates():
    chart = one(network_charts.attention, [attention("flash", 150.0)])
    assert chart.rows == [("64 x 4096", "flash 151 (150-151)", "")]


def step(stage, rate, precision, network="convnet", metric="throughput", **options):
    params = {"network": network, "batch": 256, "stage": stage, "precision": precision, **options}
    return row("training_step", metric, rate, **params)


def test_training_steps_are_ranked_in_both_groups_and_the_recommended_one_is_marked():
    found = [
        step("precision", 1000.0, "float32"),
        step("precision", 4000.0, "bfloat16", channels_last=True),
        step("precision", 2000.0, "tf32"),
        step("precision", 2500.0, "tf32", channels_last=True),
        step("precision", 2600.0, "bfloat16"),
        replace(step("precision", 1.0, "tf32", metric="peak_memory"), samples=(1442.0,)),
        replace(step("options", 1.0, "tf32", metric="peak_memory"), samples=(9999.0,)),
        step("options", 4000.0, "bfloat16", channels_last=True),
        step("options", 5000.0, "bfloat16", channels_last=True, fused=True),
    ]
    chart = one(training, found)
    assert (chart.title, chart.star) == ("Training steps: convnet, batch 256", "recommended")
    assert chart.rows == [
        ("", "bfloat16 channels_last", "63.8", "4.00x (4.00-4.00)", ""),
        ("", "bfloat16", "98.1", "2.60x (2.60-2.60)", ""),
        ("", "tf32 channels_last", "102", "2.50x (2.50-2.50)", ""),
        ("", "tf32", "128", "2.00x (2.00-2.00)", "1442"),
        ("", "float32", "255", "1x", ""),
        ("", "options on bfloat16 channels_last:", "", "to it alone", ""),
        ("*", "  + fused_optimizer", "51.0", "1.25x (1.25-1.25)", ""),
        ("", "  alone", "63.8", "1x", ""),
    ]


def test_a_star_on_the_fused_optimizer_that_others_gain_by_has_a_word_why():
    found = [
        step(stage, rate, "tf32", network, **options)
        for network, fused in (("mlp", 1000.0), ("transformer", 1400.0))
        for stage, rate, options in (
            ("precision", 1000.0, {}),
            ("options", 1000.0, {}),
            ("options", fused, {"fused": True}),
        )
    ]
    mlp, transformer = training(found)
    assert [line[:2] for line in mlp.rows[-2:]] == [
        ("*", "  + fused_optimizer"),
        ("", "  (fused_optimizer, since it is on for all networks)"),
    ]
    assert [line[:2] for line in transformer.rows[-2:]] == [("*", "  + fused_optimizer"), ("", "  alone")]


def test_that_cudnns_own_search_was_not_worth_it_is_said_below_the_faster_rows():
    found = [
        step("precision", 1000.0, "tf32"),
        step("options", 1000.0, "tf32"),
        step("options", 1080.0, "tf32", cudnn_benchmark=True),
    ]
    chart = one(training, found)
    assert [line[:2] for line in chart.rows[-3:]] == [
        ("", "  + cudnn_benchmark"),
        ("*", "  alone"),
        ("", "  (cudnn_benchmark was not worth it)"),
    ]


def test_a_network_whose_options_were_not_measured_has_its_best_precision_marked():
    chart = one(training, [step("precision", 1000.0, "float32"), step("precision", 2000.0, "tf32")])
    assert [line[:2] for line in chart.rows] == [("*", "tf32"), ("", "float32")]


def test_a_precision_that_the_accuracy_guard_refused_says_so():
    losses = [
        row("training_step", "final_loss", loss, network="convnet", precision=name, seed=seed, steps=60, first_loss=2.0)
        for name, seed, loss in (("float32", 0, 1.0), ("float32", 1, 1.01), ("bfloat16", 0, 1.9))
    ]
    rates = [step("precision", 1000.0, "float32"), step("precision", 2000.0, "bfloat16")]
    [chart] = training([*rates, *losses], matmuls=())
    assert [line[:2] for line in chart.rows] == [("", "bfloat16, refused"), ("*", "float32")]


FUSED = [
    step("precision", 1000.0, "tf32"),
    step("options", 1000.0, "tf32"),
    step("options", 990.0, "tf32", fused=True),
]


def standing(**values):
    own = {name: Incumbent(value=value, since="2026-11-20T09:00:00Z") for name, value in values.items()}
    return {"": own, "convnet": own}


def test_the_star_is_on_what_stands_from_an_earlier_probe_and_a_line_says_so():
    [chart] = training(FUSED)
    assert [line[:2] for line in chart.rows if line[0]] == [("*", "tf32"), ("*", "  alone")]
    [chart] = training(FUSED, standing(fused_optimizer=True))
    assert [line[:2] for line in chart.rows[-2:]] == [
        ("*", "  + fused_optimizer"),
        ("", "  (fused_optimizer on stands since 2026-11-20)"),
    ]


def test_a_combination_that_stands_and_was_not_measured_has_a_line_of_its_own():
    [chart] = training(FUSED, standing(compile=True))
    assert [line[:2] for line in chart.rows[-2:]] == [
        ("*", "tf32 compile, which was not measured"),
        ("", "  (compile on stands since 2026-11-20)"),
    ]


def test_what_was_measured_beside_others_has_no_star_and_says_so():
    busy = [replace(one, conditions={"other_cpus": 15.5}) for one in FUSED]
    [chart] = training(busy)
    assert not any(line[0] for line in chart.rows)
    assert chart.star == ""
    assert ("", "  (provisional: fused_optimizer)", "", "", "") in chart.rows
