"""`gputune pad`: what a size should be padded to, measured here or read from a profile."""

import json

import pytest
from making import gputune, profile, row, written

from gputune.cli.pad import MOST_OUTPUTS, M, _shape


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
    assert "by sizes around 4096 on NVIDIA H200" in result.stdout
    assert gputune("pad", "50258", "--profile", h200, "--dtype", "bf16").stdout.startswith(
        "pad 50258 to 50264: 2.8 times"
    )


def test_a_size_that_divides_well_is_kept(h200):
    assert gputune("pad", "50264", "--profile", h200).stdout.startswith("keep 50264: no gain from padding")


def test_json(h200):
    answer = json.loads(gputune("pad", "50257", "--profile", h200, "--json").stdout)
    assert (answer["n"], answer["padded"], answer["dtype"]) == (50257, 50264, "bfloat16")
    assert answer["interval"][0] <= answer["gain"] <= answer["interval"][1]


def test_measured_here_it_is_one_line_with_the_device():
    result = gputune("pad", "128", "--dtype", "float32")
    assert result.returncode == 0
    assert result.stdout.startswith("keep 128: no gain from padding (float32, as ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["50257", "--dtype", "int3"], "choose from bfloat16, float16, tf32, float32"),
        (["0"], "greater than or equal to 1"),
        (["99999999999"], "16777216"),
        (["x"], "valid int"),
        (["8", "--profile", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    result = gputune("pad", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_profile_without_the_dtype_says_how_to_get_it(h200):
    result = gputune("pad", "8", "--dtype", "float16", "--profile", h200)
    assert result.returncode == 2
    assert "holds no alignment of float16" in result.stderr


def test_a_huge_size_is_measured_with_fewer_rows():
    assert _shape(50257, M, 768, "bfloat16").m == M
    assert _shape(1 << 24, M, 768, "bfloat16").m * (1 << 24) <= max(MOST_OUTPUTS, 64 << 24)
