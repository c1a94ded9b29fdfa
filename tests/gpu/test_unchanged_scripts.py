"""What is put into unchanged scripts runs as fast as the same written by hand, and learns the same.

`python tests/gpu/unchanged_scripts.py` and `python tests/gpu/losses.py` print the figures.
"""

import pytest
from losses import losses
from losses import row as row_of_losses
from turns import write_profile
from unchanged_scripts import SCRIPTS, measured, row

from gputune.measurement import LEAST_GAIN


@pytest.fixture(scope="module", params=SCRIPTS)
def found(request, tmp_path_factory):
    profile = tmp_path_factory.mktemp("profile") / "profile.yaml"
    write_profile(profile)
    answer = measured(request.param, profile)
    print(row(request.param, answer))
    return answer


@pytest.mark.gpu
def test_an_unchanged_script_runs_within_3_percent_of_the_same_choices_written_by_hand(found):
    assert found.to_by_hand.ratio >= 0.97


@pytest.mark.gpu
def test_what_is_put_in_makes_no_script_slower(found):
    assert found.to_defaults.ratio > 1 / LEAST_GAIN


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["decoder", "convnet"])
def test_final_losses_differ_by_no_more_than_between_seeds(name):
    answer = losses(name)
    print(row_of_losses(name, answer))
    assert answer.farthest <= answer.allowed
    assert answer.exact_is_same or not answer.repeats


@pytest.mark.gpu
def test_under_exact_numerics_each_loss_is_the_same_bit_for_bit():
    answer = losses("mlp", seeds=2)
    assert answer.repeats
    assert answer.exact_is_same


@pytest.mark.exhaustive
@pytest.mark.slow
def test_without_a_gpu_the_comparison_goes_through_the_same_motions(tmp_path):
    write_profile(tmp_path / "profile.yaml")
    answer = measured("mlp", tmp_path / "profile.yaml", rounds=8, block_seconds=0.01)
    assert row("mlp", answer).startswith("| mlp | ")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_without_a_gpu_trainings_repeat_and_exact_numerics_change_no_bit():
    answer = losses("mlp", steps=20, seeds=1)
    assert answer.repeats
    assert answer.exact_is_same
