"""The search for the largest batch and the choice of the fastest, against simulated memory and throughput."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.batch_size.trials import (
    MARGIN,
    MOST_TIMED,
    TOLERANCE,
    Trial,
    best,
    bounds,
    contenders,
    is_certain,
    is_found,
    largest,
    next_batch,
)
from gputune.measurement import Measurement

TOTAL = 80 << 30
MOST = 65536


def memory(fixed: float, each: float, power: float = 1.0, noise: float = 0.0) -> Callable[[int], Trial]:
    """A device of which a step takes the share `fixed`, and `each` for a sample, or as a power of the batch."""
    dice = random.Random(7)

    def trial(batch: int) -> Trial:
        used = (fixed + each * batch**power) * dice.gauss(1, noise)
        if used > 1:
            return Trial(batch=batch, fate="no memory", why="out of memory")
        return Trial(batch=batch, rate=1.0, left_bytes=int((1 - used) * TOTAL), total_bytes=TOTAL)

    return trial


def searched(attempt: Callable[[int], Trial], start: int = 1, most: int = MOST) -> list[Trial]:
    trials: list[Trial] = []
    while (batch := next_batch(trials, start, most)) is not None:
        assert 1 <= batch <= most
        trials.append(attempt(batch))
        assert len(trials) <= 80, "it does not end"
    return trials


def closed(low: int | None, high: int | None, most: int = MOST) -> bool:
    return (low == most and high is None) or (low or 0) + max(1, int(TOLERANCE * (low or 0))) >= (high or 0)


class TestTheLargest:
    @pytest.mark.slow
    @given(st.floats(0, 0.8), st.integers(1, 40000), st.integers(1, 512), st.sampled_from([0.8, 1.0, 1.3]))
    def test_both_boundaries_are_closed_in_and_nothing_is_named_untried(
        self, fixed: float, capacity: int, start: int, power: float
    ) -> None:
        attempt = memory(fixed, (1 - fixed) / capacity**power, power)
        trials = searched(attempt, start)
        for margin in (MARGIN, 0.0):
            low, high = bounds(trials, margin)
            assert closed(low, high)
            assert low is None or next(trial for trial in trials if trial.batch == low).leaves(margin)
            assert high is None or not attempt(high).leaves(margin)

    @pytest.mark.parametrize("capacity", [37, 700, 5000, 30011])
    def test_a_line_through_the_memory_saves_trials(self, capacity: int) -> None:
        """Plain bisection needs five trials for each boundary after the doubling."""
        trials = searched(memory(0.1, 0.9 / capacity))
        assert len(trials) <= capacity.bit_length() + 6

    def test_no_batch_is_tried_twice(self) -> None:
        batches = [trial.batch for trial in searched(memory(0.1, 0.9 / 5000))]
        assert len(batches) == len(set(batches))

    def test_a_batch_far_over_the_memory_is_not_tried_where_the_line_tells(self) -> None:
        assert max(trial.batch for trial in searched(memory(0.05, 0.95 / 1100))) < 1300

    @pytest.mark.parametrize("noise", [0.01, 0.05])
    def test_noise_does_not_keep_it_from_ending(self, noise: float) -> None:
        found = largest(searched(memory(0.1, 0.9 / 5000, noise=noise)))
        assert found is not None
        assert 0.6 * 4444 < found < 1.1 * 4444

    def test_a_memory_that_tells_nothing_is_bisected(self) -> None:
        def attempt(batch: int) -> Trial:
            return Trial(batch=batch, fate="ran" if batch <= 1000 else "no memory")

        assert closed(*bounds(searched(attempt), 0.0))

    @pytest.mark.parametrize(
        ("attempt", "start", "most", "found"),
        [
            (memory(0.1, 0.9 / 20), 256, MOST, (17, 20)),
            (memory(1.1, 0.0), 8, MOST, (None, None)),
            (memory(0.95, 0.01), 1, MOST, (None, 5)),
            *((memory(0.1, 0.0), 1, most, (most, most)) for most in (1, 100, MOST)),
        ],
        ids=["below the start", "nothing fits", "only without the margin", "just one", "a hundred", "everything"],
    )
    def test_the_largest_with_the_margin_and_without(
        self, attempt: Callable[[int], Trial], start: int, most: int, found: tuple[int | None, int | None]
    ) -> None:
        trials = searched(attempt, start, most)
        assert (largest(trials), largest(trials, 0)) == found

    @pytest.mark.parametrize(
        ("lefts", "found"),
        [
            ({1: 0.9, 2: 0.8}, False),
            ({1: 0.9, 2: 0.05}, True),
            ({64: 0.5, 128: 0.05}, False),
            ({100: 0.5, 103: 0.05}, True),
            ({1: 0.05}, True),
            ({2: 0.05}, False),
        ],
    )
    def test_the_largest_is_found_only_next_to_one_that_did_not_leave_the_margin(
        self, lefts: dict[int, float], found: bool
    ) -> None:
        trials = [Trial(batch=batch, left_bytes=int(100 * left), total_bytes=100) for batch, left in lefts.items()]
        assert is_found(trials) == found

    def test_what_is_left_and_cannot_be_told_is_no_margin(self) -> None:
        assert not Trial(batch=8).leaves(MARGIN)
        assert Trial(batch=8).leaves(0)

    def test_what_fails_later_bounds_what_ran_before(self) -> None:
        trials = searched(memory(0.1, 0.9 / 5000))
        found = largest(trials) or 0
        assert (largest([*trials, Trial(batch=found, fate="no memory")]) or 0) < found

    def test_large_batches_are_round_numbers(self) -> None:
        assert (largest(searched(memory(0.1, 0.9 / 5000))) or 1) % 32 == 0


def curve(rate: Callable[[int], float], most: int = 4096) -> list[Trial]:
    batches = [1 << power for power in range(most.bit_length())]
    return [Trial(batch=batch, rate=rate(batch), left_bytes=TOTAL // 2, total_bytes=TOTAL) for batch in batches]


class TestContenders:
    def test_they_stand_around_the_top(self) -> None:
        found = contenders(curve(lambda batch: {256: 90.0, 512: 120.0, 1024: 90.0}.get(batch, 10.0)))
        assert found == [384, 512, 768]

    def test_on_a_plateau_its_beginning_is_among_them(self) -> None:
        found = contenders(curve(lambda batch: min(batch, 64) + batch / 1e4))
        assert {48, 64, 4096} <= set(found)

    def test_on_a_wide_plateau_they_are_far_apart(self) -> None:
        found = contenders(curve(lambda batch: min(batch, 16) * (1 + batch / 1e5)))
        assert all(large >= 1.2 * small for small, large in pairwise(found))

    def test_none_is_larger_than_what_leaves_the_margin(self) -> None:
        trials = [*curve(float), Trial(batch=8192, rate=9e9, left_bytes=1, total_bytes=TOTAL)]
        assert max(contenders(trials)) == 4096

    @pytest.mark.slow
    @given(st.lists(st.floats(1, 1e6), min_size=1, max_size=16))
    def test_whatever_the_curve_there_are_few_and_the_top_is_one(self, rates: list[float]) -> None:
        trials = [replace(trial, rate=rate) for trial, rate in zip(curve(float, 1 << 15), rates, strict=False)]
        found = contenders(trials)
        assert 1 <= len(found) <= MOST_TIMED
        assert max(trials, key=lambda trial: trial.rate or 0).batch in found

    def test_of_nothing_that_ran_there_are_none(self) -> None:
        assert contenders([Trial(batch=1, fate="no memory")]) == []


def timed(noise: float = 0.0, **rates: float) -> list[Measurement]:
    dice = random.Random(3)
    drifts = [dice.gauss(1, 0.1) for _ in range(12)]
    return [
        Measurement(
            bench="batch_size", metric="throughput", unit="samples/s", device="cpu", params={"batch": int(name[1:])},
            samples=tuple(rate * drift * dice.gauss(1, noise) for drift in drifts),
        )
        for name, rate in rates.items()
    ]  # fmt: skip


class TestTheFastest:
    @pytest.mark.parametrize("noise", [0.0, 0.01])
    @pytest.mark.parametrize(
        ("rates", "batch"),
        [
            ({"b64": 100.0, "b128": 150.0, "b256": 200.0}, 256),
            ({"b64": 100.0, "b128": 197.0, "b256": 200.0}, 128),
            ({"b64": 100.0, "b128": 100.0, "b256": 100.0}, 64),
            ({"b64": 100.0, "b128": 200.0, "b256": 120.0}, 128),
        ],
    )
    def test_it_is_the_smallest_within_3_percent_of_the_best(
        self, rates: dict[str, float], batch: int, noise: float
    ) -> None:
        found = best(timed(noise, **rates))
        assert found
        assert found.params["batch"] == batch

    def test_of_none_there_is_none(self) -> None:
        assert best([]) is None

    @pytest.mark.parametrize(
        ("noise", "rates", "certain"),
        [
            (0.01, {"b64": 100.0, "b128": 150.0, "b256": 200.0}, True),
            (0.001, {"b64": 100.0, "b128": 100.0, "b256": 100.0}, True),
            (0.01, {"b64": 100.0}, True),
            (0.25, {"b64": 100.0, "b128": 105.0, "b256": 95.0}, False),
        ],
        ids=["told apart", "certainly alike", "the only one", "lost in noise"],
    )
    def test_it_is_certain_where_batches_are_told_apart_or_certainly_alike(
        self, noise: float, rates: dict[str, float], certain: bool
    ) -> None:
        rows = timed(noise, **rates)
        found = best(rows)
        assert found
        assert is_certain(rows, found) is certain
