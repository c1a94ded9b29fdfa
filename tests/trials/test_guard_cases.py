"""The guard on real programs: what settings break is refused, and what they do not is accepted."""

from collections.abc import Iterator

import pytest
import torch
from trials.guard_cases import BROKEN, SOUND, Case, judged

QUICK = {"linear_regression", "with_adamw: no weight decay", "branched: scaled_by_a_fiftieth", "exact_counts"}
"""Some of each kind that run by default: they take half a second together."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def cases(chosen: list[Case]) -> list[object]:
    slow = pytest.mark.slow
    return [pytest.param(one, id=one.name, marks=() if one.name in QUICK else slow) for one in chosen]


def test_there_are_enough() -> None:
    names = [one.name for one in (*SOUND, *BROKEN)]
    assert len(SOUND) >= 20
    assert len(BROKEN) >= 30
    assert len(set(names)) == len(names)
    assert set(names) >= QUICK


@pytest.mark.sampled(5)
@pytest.mark.slow
@pytest.mark.parametrize("case", cases(BROKEN))
def test_what_is_broken_is_refused(case: Case) -> None:
    found = judged(case)
    assert found.outcome == "refused", found.why


@pytest.mark.sampled(5)
@pytest.mark.slow
@pytest.mark.parametrize("case", cases(SOUND))
def test_what_is_sound_is_accepted(case: Case) -> None:
    found = judged(case)
    assert found.outcome == "accepted", str(found.why)
