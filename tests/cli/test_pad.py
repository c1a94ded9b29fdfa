"""`gputune pad`: what a size should be padded to, measured here or read from a profile."""

import json
import re
from dataclasses import replace

import making
import pytest
from forked import gputune, refusal
from making import profile, row, written


def aligned(**rates):
    """Rows around 4096 that run at these rates by multiple."""
    return [
        row("matmul_alignment", "throughput", rate * (4096 + multiple), dtype="bfloat16", product="forward", dim="N",
            size=4096 + multiple, multiple=multiple)
        for multiple, rate in ((int(name[1:]), rate) for name, rate in rates.items())
    ]  # fmt: skip


@pytest.fixture
def h200(tmp_path):
    rows = aligned(x1=1.0, x2=2.5, x4=2.5, x8=7.0)
    return written(tmp_path, profile({"dimension_multiple": {"bfloat16": 8}}, measurements=tuple(rows)))


def test_a_profile_tells_what_a_size_that_divides_alike_gained(h200):
    result = gputune("pad", "50257", "--profile", h200)
    assert result.stdout.startswith("pad 50257 to 50264: 7 times as fast (")
    assert "(bfloat16, by the sizes measured on NVIDIA H200)" in result.stdout
    assert gputune("pad", "50258", "--profile", h200, "--dtype", "bf16").stdout.startswith(
        "pad 50258 to 50264: 2.8 times"
    )


def test_a_size_that_divides_well_is_kept(h200):
    assert gputune("pad", "50264", "--profile", h200).stdout.startswith("keep 50264: no gain from padding")


def test_json(h200):
    answer = json.loads(gputune("pad", "50257", "--profile", h200, "--json").stdout)
    assert (answer["n"], answer["padded"]) == (50257, 50264)
    assert answer["interval"][0] <= answer["gain"] <= answer["interval"][1]


def test_a_gain_that_is_not_certain_is_none(tmp_path):
    rows = aligned(x1=1.0, x8=1.02)
    rows[1] = replace(
        rows[1], samples=tuple(sample * (0.9 if number % 2 else 1.1) for number, sample in enumerate(rows[1].samples))
    )
    path = written(tmp_path, profile({"dimension_multiple": {"bfloat16": 8}}, measurements=tuple(rows)))
    assert gputune("pad", "9", "--profile", path).stdout.startswith("keep 9: no certain gain from padding")


@pytest.mark.parametrize("params", [{"multiple": 0}, {"multiple": -8}, {"multiple": "x"}, {"size": 0}])
def test_a_row_that_makes_no_sense_is_left_out(tmp_path, params):
    rows = [replace(one, params=one.params | params) for one in aligned(x1=1.0, x8=7.0)]
    path = written(tmp_path, profile({"dimension_multiple": {"bfloat16": 8}}, measurements=tuple(rows)))
    assert gputune("pad", "9", "--profile", path).stdout.startswith("pad 9 to 16: faster (")


@pytest.mark.slow
def test_measured_here_it_is_one_line_with_the_device():
    result = making.gputune("pad", "128", "--dtype", "float32")
    assert result.returncode == 0, result.stderr
    verdict = r"(keep 128: no (certain )?gain from padding|pad 128 to \d+: [0-9.]+ times as fast \(.+\))"
    assert re.fullmatch(verdict + r" \(256 x \d+ x 256 float32 on .+\)\n", result.stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["50257", "--dtype", "int3"], "choose from bfloat16, float16, tf32, float32"),
        (["0"], "whole number from 1 to"),
        (["99999999999"], "16,777,216"),
        (["x"], "N: must be a whole number"),
        (["8", "--profile", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    assert words in refusal("pad", *arguments)


def test_a_profile_without_the_dtype_says_how_to_get_it(h200):
    fault = refusal("pad", "8", "--dtype", "float16", "--profile", h200)
    assert "holds no measured alignment of float16" in fault
