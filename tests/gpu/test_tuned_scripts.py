"""What `gputune tune` chooses is as fast as the best of other combinations in processes of their own.

`python tests/gpu/tuned_scripts.py` prints the figures.
"""

import pytest
from tuned_scripts import (
    ALL,
    CLOSE,
    FRAMEWORKS,
    UNCHANGED,
    Found,
    as_beside,
    compared_with_others,
    groups,
    mean,
    measured,
    others_of,
    row,
)

from gputune.inject import decision
from gputune.inject.applied import Reason
from gputune.measurement import LEAST_GAIN, comparison_of
from gputune.trials.combination import Combination

LONGEST_SECONDS = 90
TF32 = Combination.of({"matmul_precision": "tf32"})


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*UNCHANGED, *FRAMEWORKS])
def test_what_is_chosen_is_within_3_percent_of_the_best_and_no_slower_than_the_default(name, tmp_path):
    found = compared_with_others(name, measured(name, tmp_path), tmp_path)
    print(row(name, found))
    assert found.to_best.ratio >= CLOSE
    assert found.to_defaults.ratio > 1 / LEAST_GAIN
    assert found.measuring_seconds <= LONGEST_SECONDS


@pytest.mark.exhaustive
@pytest.mark.slow
def test_without_a_gpu_it_goes_through_the_same_motions(tmp_path):
    before = measured("mlp", tmp_path, steps=60)
    row_of = decision.failed("compile", Reason.NO_MODEL())
    before.left |= dict.fromkeys(("compile", "amp_dtype", "matmul_precision"), row_of)
    assert [one.values for one in others_of("mlp", before)] == [{"fused_optimizer": True}]
    found = compared_with_others("mlp", before, tmp_path, rounds=8, block_seconds=0.01)
    assert row("mlp", found).startswith("| mlp | ")


def made(**rates):
    gain = comparison_of([2.0] * 8)
    return Found(
        chosen=TF32, best=TF32, rates={"defaults": [10.0], "flags": [10.0], "family": [12.0], "tf32": [20.0], **rates},
        to_defaults=gain, to_best=comparison_of([1.0] * 8), measuring_seconds=10.4,
    )  # fmt: skip


def test_a_row_of_the_table():
    assert row("mlp", made()) == (
        "| mlp | tf32 | 100.00 | 100.00 | 83.33 | 50.00 | 50.00 | tf32 | 2.00 (2.00 to 2.00) "
        "| 100.0 (100.0 to 100.0) | 10 |"
    )


def test_the_geometric_mean():
    assert mean([made(), made(tf32=[80.0])], "tuned") == pytest.approx(4.0)
    assert mean([made(), made()], "family") == pytest.approx(1.2)


def test_a_later_group_stands_beside_the_first_by_what_both_share():
    first = as_beside("tf32", {}, {"tf32": [10.0, 20.0], "defaults": [5.0, 10.0]})
    later = as_beside("tf32", first, {"tf32": [5.0, 10.0], "amp": [10.0, 20.0]})
    assert first | later == {"tf32": [10.0, 20.0], "defaults": [5.0, 10.0], "amp": [20.0, 40.0]}


def test_each_process_is_in_the_first_group_with_room_for_it():
    assert groups({"a": 3, "b": 4, "c": 2, "d": 1, "e": 9}, 5) == [["a", "c"], ["b", "d"], ["e"]]


@pytest.mark.parametrize("left", [(), ("channels_last",), ("fused_optimizer",), ("channels_last", "fused_optimizer")])
@pytest.mark.parametrize("name", [*ALL, "convnet"])
def test_at_most_24_combinations_run_beside_each_other(name, left):
    class Some:
        def __init__(self):
            self.left = dict.fromkeys(left)

    assert 6 <= len(others_of(name, Some())) <= 24
