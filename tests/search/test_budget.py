"""How long a search may go on."""

from typing import Any

import pytest

from gputune.search.budget import BLOCK, BLOCKS, FEWEST, MOST, SECONDS, SHORT_SECONDS, STEPS, STEPS_OF_TIME, Budget
from gputune.search.combination import DEFAULT, Combination

TF32 = Combination.of({"matmul_precision": "tf32"})


def budget(step: float | None, passed: float = 0.0, *, apart: float = 0.0, **more: Any) -> Budget:
    now = [1000.0]
    made = Budget(clock=lambda: now[0], step_seconds={} if step is None else {DEFAULT: step}, apart=apart, **more)
    now[0] += passed
    return made


@pytest.mark.parametrize(
    ("made", "share"),
    [
        (budget(None, 10.0), 0.0),
        (budget(0.1, SECONDS / 2), 0.5),
        (budget(0.1, used=STEPS // 4), 0.25),
        (budget(2.0, STEPS_OF_TIME), 0.5),
        (budget(0.001, used=STEPS, most=STEPS), 1.0),
        (budget(0.1, 60.0, apart=60.0), 0.0),
        (budget(0.1, 20.0, used=STEPS), 1.0),
        (budget(0.1, 20.0, used=STEPS, is_final=True), 20.0 / SHORT_SECONDS),
        (budget(0.1, SECONDS), 1.0),
        (budget(0.1, SECONDS, is_final=True), SECONDS / SHORT_SECONDS),
        (budget(2.0, STEPS_OF_TIME, is_final=True), 0.5),
        (budget(0.1, SHORT_SECONDS, apart=SHORT_SECONDS - SECONDS / 2, used=STEPS, is_final=True), 1.0),
        (budget(0.1, used=100, most=100, is_final=True), 1.0),
    ],
    ids=[
        "nothing is known of steps", "of the time", "of the steps", "slow steps have the time of a hundred",
        "no more than the user says", "compiling takes none", "all steps are taken",
        "the last comparison has more steps", "the time is over", "the last comparison has more time",
        "the last comparison of slow steps",
        "the last comparison after long compiling", "the last comparison within the user's number",
    ],
)  # fmt: skip
def test_how_much_of_a_search_is_used_up(made: Budget, share: float) -> None:
    assert made.share == pytest.approx(share)


@pytest.mark.parametrize(
    ("more", "scarcest"),
    [({"most": 20, "used": 19}, "steps"), ({"most_seconds": 11.0}, "minutes"), ({}, "seconds")],
)
def test_what_is_used_up_first(more: dict[str, Any], scarcest: str) -> None:
    assert budget(0.01, 10.0, **more).scarcest == scarcest


def test_fast_steps_may_be_more() -> None:
    made = budget(0.01, used=STEPS)
    made.step_seconds[TF32] = 0.001
    assert made.share < 0.1


def test_the_time_begins_when_it_is_said_to() -> None:
    made = budget(0.1, SECONDS)
    made.begin()
    assert made.share == 0


@pytest.mark.parametrize(
    ("made", "steps"),
    [
        (budget(None), FEWEST),
        (budget(BLOCK / 10), 10),
        (budget(10.0), FEWEST),
        (budget(1e-5), MOST),
        (budget(1e-5, most=3 * BLOCKS), 3),
        (budget(1e-5, most=10), FEWEST),
    ],
)
def test_a_block_has_the_steps_of_a_moment_within_limits(made: Budget, steps: int) -> None:
    assert made.steps(DEFAULT) == steps


def test_a_block_has_steps_by_what_is_known_of_its_combination() -> None:
    made = budget(BLOCK / 10)
    made.step_seconds[TF32] = BLOCK / 20
    assert (made.steps(TF32), made.steps(DEFAULT)) == (20, 10)
