"""The parts of a tune are counted, with a guard and without."""

import pytest

from gputune.progress import READING, Progress
from gputune.trials.progress import CONFIRMING, GUARDING, MEASURING, Told


@pytest.mark.parametrize(("is_guarded", "confirming"), [(True, (3, 3)), (False, (2, 2))])
def test_the_parts_are_counted(is_guarded: bool, confirming: tuple[int, int]) -> None:
    seen: list[Progress] = []
    told = Told(tell=seen.append, is_guarded=is_guarded)
    told.reading()
    told.searching(MEASURING, "bfloat16")
    if is_guarded:
        told.guarding("FP32, seed 1")
    told.confirming("as it is")
    count = confirming[1]
    guard = [(2, count, GUARDING)] if is_guarded else []
    expected = [(None, None, READING), (1, count, MEASURING), *guard, (*confirming, CONFIRMING)]
    assert [(one.number, one.count, one.part) for one in seen] == expected
