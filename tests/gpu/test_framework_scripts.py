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
