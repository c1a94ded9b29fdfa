"""What is put into scripts of training frameworks is no slower than the same in each framework's own words.

`python tests/gpu/framework_scripts.py` prints the figures.
"""

from pathlib import Path

import pytest
from framework_scripts import NAMES, Found, commands, measured, row
from turns import write_profile

from gputune.measurement import comparison_of


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_what_is_put_in_is_not_certainly_slower_than_97_percent_of_by_hand(name, tmp_path):
    import torch

    if name == "ddp_loop" and torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    write_profile(tmp_path / "profile.yaml")
    found = measured(name, tmp_path / "profile.yaml")
    print(row(name, found))
    assert found.said
    assert found.to_by_hand.high >= 0.97


@pytest.mark.parametrize("name", NAMES)
def test_the_same_script_runs_alone_put_into_and_by_hand(name):
    alone, put_in, by_hand = commands(name, Path("profile.yaml")).values()
    assert put_in[-len(alone) :] == alone
    assert put_in[: -len(alone)][-2:] == ["profile.yaml", "--"]
    assert by_hand == [*alone, "--by-hand"]


def test_a_row_of_the_table():
    gain, same = comparison_of([2.0] * 8), comparison_of([0.99] * 8)
    found = Found(
        milliseconds=[20.0, 10.0, 9.9], to_alone=gain, to_by_hand=same, step_peaks=[None, 512.4, 510.0],
        said=["gputune: put into Linear (mlp): amp_dtype bfloat16"],
    )  # fmt: skip
    assert row("loop", found) == (
        "| loop | 20.00 | 10.00 | 9.90 | 2.00 (2.00 to 2.00) | 99.0 (99.0 to 99.0) | - / 512 / 510 "
        "| gputune: put into Linear (mlp): amp_dtype bfloat16 |"
    )
