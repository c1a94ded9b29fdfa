"""What is put into scripts of training frameworks is no slower than the same in each framework's own words.

`python tests/gpu/framework_scripts.py` prints the figures.
"""

import pytest
from framework_scripts import NAMES, measured, row
from turns import write_profile


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


@pytest.mark.slow
def test_without_a_gpu_the_comparison_goes_through_the_same_motions(tmp_path):
    pytest.importorskip("accelerate")
    write_profile(tmp_path / "profile.yaml")
    found = measured("accelerate_loop", tmp_path / "profile.yaml", rounds=8, block_seconds=0.01)
    assert row("accelerate_loop", found).startswith("| accelerate_loop | ")
