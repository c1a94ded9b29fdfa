"""The choices for six datasets, compared with an exhaustive sweep in the same run.

CPUs that are shared with others change their speed by half from one second to the next. So a share is a miss where it
is one with certainty, and where the profile was certain too: one whose interval holds the sweep's gain says itself that
it could not tell. Where others keep a part of the CPUs busy all the time, a block of 80 ms does not show how the kernel
shares them out over seconds; there the choice must be no slower than loading without workers.
"""

import pytest
import six_datasets
from dataloader_figures import REACHED, compared, line, share

pytestmark = [pytest.mark.real, pytest.mark.timed]

TRIES = 3
"""The others are rarely as busy three times."""
SHARED = 0.15
"""The share of the CPUs that others had: 0.02 to 0.03 where nobody else worked, 0.34 to 0.48 beside one busy loop on
two CPUs.
"""


def holds(one):
    if one["unsteady"] or one["at_most"] >= REACHED:
        return True
    return one["others"] >= SHARED and share(one["dataset"], one["found"], 0)[1] >= 1


@pytest.mark.parametrize("name", six_datasets.NAMES)
def test_the_choice_reaches_95_percent_of_the_best_of_a_sweep_in_less_time(name):
    for _ in range(TRIES):
        one = compared(name)
        print(line(one))
        if held := holds(one):
            break
    assert held, line(one)
    if one["cpus"] <= 2:
        assert one["bench_seconds"] <= 10, line(one)
    else:
        assert one["bench_seconds"] <= 0.4 * one["sweep_seconds"], line(one)
