"""The choices for six datasets, compared with an exhaustive sweep in the same run.

CPUs that are shared with others change their speed by half from one second to the next. So a share is a miss where it
is one with certainty, and where the profile was certain too: one whose interval holds the sweep's gain says itself that
it could not tell.
"""

import pytest
import six_datasets
from dataloader_figures import REACHED, compared, line

pytestmark = [pytest.mark.real, pytest.mark.timed, pytest.mark.exhaustive]

TRIES = 3
"""The others are rarely as busy three times."""


def holds(one):
    return one["at_most"] >= REACHED or one["unsteady"]


@pytest.mark.parametrize("name", six_datasets.NAMES)
def test_the_choice_reaches_95_percent_of_the_best_of_a_sweep_in_less_time(name):
    for _ in range(TRIES):
        one = compared(name)
        print(line(one))
        if holds(one):
            break
    assert holds(one), line(one)
    if one["cpus"] <= 2:
        assert one["bench_seconds"] <= 11, line(one)  # it has 10, and ends what it began
    else:
        assert one["bench_seconds"] <= 0.4 * one["sweep_seconds"], line(one)
