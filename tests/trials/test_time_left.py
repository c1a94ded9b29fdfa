"""What a tune tells of the time left, held against tunes on a clock of their own."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from gputune.progress import Progress
from gputune.trials import confirming, guarding
from gputune.trials.progress import CONFIRMING, GUARDING, MEASURING, Told


class Tune:
    """A tune on a clock of its own: what was told, and when."""

    def __init__(self, guard_steps: int | None = 100) -> None:
        self.now = 0.0
        self.seen: list[tuple[float, Progress]] = []
        self.told = Told(
            tell=lambda one: self.seen.append((self.now, one)),
            guard_steps=guard_steps, guard_turns=guarding.TURNS, confirming_turns=confirming.TURNS,
            confirming_steps=confirming.STEPS, confirming_seconds=confirming.SECONDS, clock=lambda: self.now,
        )  # fmt: skip

    def measured(self, start: float, step: float, search: float, compiling: float = 0.0) -> None:
        """The first run: its start, half of its search, compiling, and the rest."""
        self.told.starting()
        self.now += start
        self.told.start_seconds, self.told.compiles = start, bool(compiling)
        self.told.stepped(20 * step, 20)
        self.told.compiled = bool(compiling)
        self.told.measuring(MEASURING, "bfloat16", search)
        self.now += search / 2
        if compiling:
            self.told.measuring(MEASURING, "compile", search / 2)
            self.now += compiling
            self.told.compile_seconds, self.told.compiles = compiling, False
        self.told.measuring(MEASURING, "torch's defaults", search / 2)
        self.now += search / 2

    def started(self, part: str, plain: float, tuned: float) -> None:
        """All starts of a part."""
        turns = guarding.TURNS if part == GUARDING else confirming.TURNS
        for number, has_settings in enumerate(turns):
            with self.told.start(part, turns[number:]):
                self.now += tuned if has_settings else plain

    def estimates(self, since: float = 0.0) -> Iterator[tuple[float, float]]:
        """What was told, and how long it then took."""
        for then, one in self.seen:
            assert one.left_seconds is not None
            if then >= since:
                yield one.left_seconds, self.now - then


TUNES = {
    "steps of no time": (4.0, 0.002, 30.0, 0.0, (6.0, 6.1), (7.3, 7.4)),
    "slow steps": (12.0, 0.9, 90.0, 0.0, (130.0, 80.0), (45.0, 30.0)),
    "compiled": (5.0, 0.05, 40.0, 60.0, (13.0, 22.0), (9.0, 20.0)),
}
"""A start's seconds, a step's, the search's, those of compiling, and what each start of the guard and of the
confirmation takes: as it is, and with the settings."""


@pytest.fixture(params=TUNES)
def whole(request: pytest.FixtureRequest) -> tuple[float, Tune]:
    """The end of the first start of a program, and its whole tune."""
    start, step, search, compiling, guard, confirmation = TUNES[request.param]
    tune = Tune()
    tune.measured(start, step, search, compiling)
    tune.started(GUARDING, *guard)
    tune.started(CONFIRMING, *confirmation)
    return start, tune


def test_from_the_first_start_on_it_is_right_within_a_factor_of_two(whole: tuple[float, Tune]) -> None:
    start, tune = whole
    for left, took in tune.estimates(since=start):
        assert took / 2 <= left <= 2 * took


def test_from_then_on_it_falls(whole: tuple[float, Tune]) -> None:
    start, tune = whole
    for (before, _), (after, _) in pairwise(tune.estimates(since=start)):
        assert after <= 1.2 * before


def test_a_recorded_tune_on_a_busy_machine() -> None:
    """Of `plain.py` on two CPUs that ten others wanted: right within a factor of two from the first run's end on."""
    tune = Tune()
    tune.told.starting()
    tune.now, tune.told.start_seconds = 81.07, 8.44
    tune.told.stepped(5.896, 60)
    tune.told.compile_seconds, tune.told.compiles, tune.told.compiled = 47.4, False, False
    turns = [(GUARDING, guarding.TURNS, (26.5, 27.2, 27.8, 10.3, 11.3))]
    turns += [(CONFIRMING, confirming.TURNS, (17.8, 21.6, 13.7, 22.9, 35.3, 25.1))]
    for part, whole_part, seconds in turns:
        for number, taken in enumerate(seconds):
            with tune.told.start(part, whole_part[number:]):
                tune.now += taken
    estimates = list(tune.estimates(since=81))
    assert len(estimates) == 11
    for left, took in estimates:
        assert took / 2 <= left <= 2 * took
    rises = [after - before for (before, _), (after, _) in pairwise(estimates) if after > before]
    assert sum(rises) < 0.1 * estimates[0][0]


def test_it_is_told_before_anything_is_known() -> None:
    tune = Tune()
    tune.told.reading()
    [(_, told)] = tune.seen
    assert told.left_seconds is not None
    assert 60 < told.left_seconds < 300
    assert told.number is None


def test_a_start_that_failed_costs_a_new_search() -> None:
    tune = Tune()
    tune.measured(5.0, 0.05, 40.0)
    (_, before) = tune.seen[-1]
    tune.told.again("compile failed; starting again without it")
    (_, after) = tune.seen[-1]
    assert (before.left_seconds or 0) < (after.left_seconds or 0)
    assert after.part == "compile failed; starting again without it"


@pytest.mark.parametrize(("guard_steps", "numbers"), [(100, [(2, 3), (3, 3)]), (None, [(2, 2)])])
def test_the_parts_are_counted(guard_steps: int | None, numbers: list[tuple[int, int]]) -> None:
    tune = Tune(guard_steps)
    tune.measured(1.0, 0.01, 10.0)
    assert tune.seen[-1][1].number == 1
    if guard_steps:
        tune.started(GUARDING, 1.0, 1.0)
    tune.started(CONFIRMING, 1.0, 1.0)
    assert list(dict.fromkeys((one.number, one.count) for _, one in tune.seen))[1:] == numbers


def test_a_start_takes_as_long_as_those_of_its_kind() -> None:
    tune = Tune()
    tune.measured(1.0, 0.01, 10.0)
    tune.started(CONFIRMING, 5.0, 8.0)
    left = [one.left_seconds for _, one in tune.seen if one.part == CONFIRMING]
    assert left[3:] == pytest.approx([18.0, 13.0, 8.0])


def test_a_start_that_fails_teaches_nothing() -> None:
    tune = Tune()
    with pytest.raises(ValueError, match="ended"), tune.told.start(GUARDING, guarding.TURNS):
        raise ValueError("ended")
    with tune.told.start(GUARDING, guarding.TURNS):
        pass
    assert tune.seen[0][1].left_seconds == tune.seen[1][1].left_seconds
