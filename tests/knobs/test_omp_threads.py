"""The number of threads, as a variable and in a running process."""

import pytest
import torch_child

from gputune.knobs.omp_threads import environ


def test_the_variable() -> None:
    assert environ(8) == {"OMP_NUM_THREADS": "8"}
    assert environ(None) == {}


@pytest.mark.slow
def test_in_a_process_that_runs_already() -> None:
    assert torch_child.ask("""
from gputune.knobs import omp_threads as setting
answer = [setting.current() == setting.default() == torch.get_num_threads()]
for value in (1, 2, 1):
    setting.apply(value)
    answer.append(setting.current())
""") == [True, 1, 2, 1]
