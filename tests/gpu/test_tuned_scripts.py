"""What `gputune tune` chooses is as fast as the best of other combinations in processes of their own.

`python tests/gpu/tuned_scripts.py` prints the figures.
"""

import pytest
from tuned_scripts import CLOSE, FRAMEWORKS, UNCHANGED, compared_with_others, measured, others_of, row

from gputune.measurement import LEAST_GAIN

LONGEST_SECONDS = 90


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
    before.left |= dict.fromkeys(("compile", "amp_dtype", "matmul_precision"), "it is left out here")
    assert [one.values for one in others_of("mlp", before)] == [{"fused_optimizer": True}]
    found = compared_with_others("mlp", before, tmp_path, rounds=8, block_seconds=0.01)
    assert row("mlp", found).startswith("| mlp | ")
