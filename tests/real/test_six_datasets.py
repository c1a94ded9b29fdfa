"""What is found for six datasets, held against an exhaustive sweep in the same run.

A share is a miss where it is one with certainty: CPUs that are shared are lent and taken away within a turn.
"""

import pytest
import six_datasets
from dataloader_figures import REACHED, compared, line

pytestmark = pytest.mark.real

TRIES = 3
"""What others do to shared CPUs while the profile is measured hides what workers gain, but not three times."""


@pytest.mark.parametrize("name", six_datasets.NAMES)
def test_the_choice_reaches_95_percent_of_the_best_of_a_sweep_in_less_time(name):
    for _ in range(TRIES):
        one = compared(name)
        print(line(one))
        if one["at_most"] >= REACHED:
            break
    assert one["at_most"] >= REACHED, line(one)
    if one["cpus"] <= 2:
        assert one["bench_seconds"] <= 10, line(one)
    else:
        assert one["bench_seconds"] <= 0.4 * one["sweep_seconds"], line(one)
