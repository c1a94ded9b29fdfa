"""Plain training scripts under a profile run as fast as tuned by hand; `python tests/gpu/training_scripts.py` prints
the figures.
"""

import pytest
from training_scripts import NETWORKS, line, measured

from gputune.measurement import LEAST_GAIN

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", params=list(NETWORKS))
def found(request):
    answer = measured(request.param)
    print(line(request.param, answer))
    return answer


def test_an_unchanged_script_runs_as_fast_as_with_the_flags_written_by_hand(found):
    assert found["flags"]["plain"] == found["flags"]["by_hand"] != found["flags"]["defaults"]
    assert 1 / LEAST_GAIN < found["plain/by_hand"].ratio < LEAST_GAIN


def test_with_the_lines_of_a_tuning_it_runs_within_3_percent_of_the_best_version_written_by_hand(found):
    assert found["tuning/best"].ratio >= 0.97


def test_a_profile_makes_no_script_slower(found):
    assert found["plain/defaults"].ratio > 1 / LEAST_GAIN
    assert found["tuning/defaults"].low > 1
