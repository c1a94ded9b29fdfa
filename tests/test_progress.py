"""How much of some work is left: as time passes, and where more follows."""

import pytest

from gputune.progress import Progress, before

PART = Progress(part="conv", number=2, count=3, left_seconds=20.0, later_seconds=12.0)


@pytest.mark.parametrize(("seconds", "left"), [(0, 20), (5, 15), (8, 12), (100, 12)])
def test_time_passes_until_only_what_follows_is_left(seconds, left):
    assert PART.after(seconds) == left


def test_it_never_is_negative():
    assert Progress(part="conv", left_seconds=3.0).after(10) == 0
    assert Progress(part="conv", left_seconds=-1.0).after(0) == 0


def test_what_is_not_known_stays_unknown():
    unknown = Progress(part="conv")
    assert unknown.after(3) is None
    assert unknown.followed_by(3).left_seconds is None


def test_the_same_part_a_while_later():
    then = PART.then("bfloat16", 3.0)
    assert (then.part, then.number, then.doing, then.left_seconds) == ("conv", 2, "bfloat16", 17)


def test_what_follows_is_added_to_the_whole_and_to_what_comes_later():
    whole = PART.followed_by(30)
    assert (whole.left_seconds, whole.later_seconds) == (50, 42)


def test_what_follows_is_asked_for_when_a_part_begins():
    """Not each time something else of it is done: asking may take long."""
    told, rest = [], [30.0, 10.0]
    tell = before(told.append, lambda: rest.pop(0))
    for doing in ("", "bfloat16", ""):
        tell(Progress(part="conv", doing=doing, left_seconds=5.0))
    assert [one.left_seconds for one in told] == [35, 35, 15]
