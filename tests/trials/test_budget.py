"""How long a search may go on."""

from typing import Any

import pytest

from gputune.trials.combination import DEFAULT, Combination
from gputune.trials.search import BLOCK, BLOCKS, FEWEST, MOST, SECONDS, SHORT_SECONDS, STEPS, STEPS_OF_TIME, Budget

TF32 = Combination.of({"matmul_precision": "tf32"})


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def budget(clock: Clock, step: float, **more: Any) -> Budget:
    return Budget(clock=clock, step_seconds={DEFAULT: step}, **more)


class TestShare:
    def test_it_is_nothing_before_anything_is_known_of_steps(self, clock: Clock) -> None:
        made = Budget(clock=clock)
        clock.now += 10
        assert made.share == 0

    def test_it_is_that_of_the_time(self, clock: Clock) -> None:
        made = budget(clock, 0.1)
        clock.now += SECONDS / 2
        assert made.share == pytest.approx(0.5)

    def test_or_of_the_steps(self, clock: Clock) -> None:
        assert budget(clock, 0.1, used=STEPS // 4).share == pytest.approx(0.25)

    def test_slow_steps_have_the_time_of_a_hundred(self, clock: Clock) -> None:
        made = budget(clock, 2.0)
        clock.now += STEPS_OF_TIME
        assert made.share == pytest.approx(0.5)

    def test_there_are_more_of_fast_steps(self, clock: Clock) -> None:
        made = budget(clock, 0.01, used=STEPS)
        made.step_seconds[TF32] = 0.001
        assert made.share < 0.1

    def test_but_not_where_the_user_says_a_number(self, clock: Clock) -> None:
        assert budget(clock, 0.001, used=STEPS, most=STEPS).share == 1

    def test_compiling_takes_none_of_the_searchs_time(self, clock: Clock) -> None:
        made = budget(clock, 0.1)
        clock.now += 60
        made.apart += 60
        assert made.share == 0

    def test_the_time_begins_when_it_is_said_to(self, clock: Clock) -> None:
        made = budget(clock, 0.1)
        clock.now += SECONDS
        made.begin()
        assert made.share == 0


class TestTheLastComparison:
    @pytest.mark.parametrize(("steps", "seconds"), [(STEPS, 20.0), (0, SECONDS)])
    def test_it_may_have_more_while_the_run_is_short(self, clock: Clock, steps: int, seconds: float) -> None:
        made = budget(clock, 0.1, used=steps)
        clock.now += seconds
        assert made.share == 1
        made.last = True
        assert made.share == pytest.approx(seconds / SHORT_SECONDS)

    def test_slow_steps_keep_the_time_of_a_hundred(self, clock: Clock) -> None:
        made = budget(clock, 2.0, last=True)
        clock.now += STEPS_OF_TIME
        assert made.share == pytest.approx(0.5)

    def test_but_not_after_a_long_time_of_compiling(self, clock: Clock) -> None:
        made = budget(clock, 0.1, used=STEPS, last=True)
        clock.now += SHORT_SECONDS
        made.apart += SHORT_SECONDS - SECONDS / 2
        assert made.share == 1

    def test_nor_more_than_the_user_says(self, clock: Clock) -> None:
        assert budget(clock, 0.1, used=100, most=100, last=True).share == 1


class TestBlocks:
    def test_they_have_few_steps_before_anything_is_known(self, clock: Clock) -> None:
        assert Budget(clock=clock).steps(DEFAULT) == FEWEST

    def test_they_have_the_steps_of_a_moment(self, clock: Clock) -> None:
        assert budget(clock, BLOCK / 10).steps(DEFAULT) == 10

    def test_by_what_is_known_of_the_combination(self, clock: Clock) -> None:
        made = budget(clock, BLOCK / 10)
        made.step_seconds[TF32] = BLOCK / 20
        assert (made.steps(TF32), made.steps(DEFAULT)) == (20, 10)

    @pytest.mark.parametrize(("step", "steps"), [(10.0, FEWEST), (1e-5, MOST)])
    def test_within_limits(self, clock: Clock, step: float, steps: int) -> None:
        assert budget(clock, step).steps(DEFAULT) == steps

    def test_and_as_few_as_the_users_number_asks_for(self, clock: Clock) -> None:
        assert budget(clock, 1e-5, most=3 * BLOCKS).steps(DEFAULT) == 3
        assert budget(clock, 1e-5, most=10).steps(DEFAULT) == FEWEST
