"""Which numbers of workers are tried, on curves of every shape, with and without noise."""

import random
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import facts_of

from gputune.search.workers import affordable, contenders, even, fewest, per_cpu, sampled, search

H200 = {
    "decoding": {0: 245, 1: 243, 2: 444, 4: 827, 8: 1614, 12: 2292, 16: 2533, 20: 2008, 24: 1929, 32: 1900},
    "memory": {0: 132754, 1: 25063, 2: 28585, 4: 31574, 8: 30478, 12: 27922, 16: 29697, 20: 29044, 32: 26000},
    "uneven": {0: 723, 1: 678, 2: 1213, 4: 2554, 8: 3651, 12: 3674, 16: 4848, 20: 4995, 24: 6230, 28: 5709, 32: 6643},
    "waiting": {0: 240, 1: 238, 2: 478, 4: 957, 8: 1872, 12: 2836, 16: 3704, 20: 4375, 24: 5423, 32: 7000},
}
"""Measured on 16 cores, every point of a sweep; between them the curve is taken to be straight. The uneven one had
cores of different speeds, so that more workers than cores pay.
"""


def between(points, count):
    if count in points:
        return points[count]
    low = max(point for point in points if point < count)
    high = min(point for point in points if point > count)
    return points[low] + (points[high] - points[low]) * (count - low) / (high - low)


def searched(rate, limit, enough=None, epoch=None):
    return sampled(search(limit, enough, epoch), rate, over=lambda: False)


@pytest.mark.parametrize("kind", H200)
def test_measured_curves_are_found_with_few_trials(kind):
    rates = searched(lambda count: between(H200[kind], count), 32)
    best = max(H200[kind].values())
    assert between(H200[kind], fewest(rates)) >= 0.95 * best
    assert len(rates) <= 12, "of the 33 counts of a sweep"
    assert list(rates)[-1] == 0, "the training process itself, whose dataset then is no longer as it was"


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", H200)
def test_noise_of_5_percent_costs_no_more_than_it_is_worth(kind, seed):
    noise = random.Random(seed)
    rates = searched(lambda count: between(H200[kind], count) * noise.gauss(1, 0.05), 32)
    names = contenders(rates, None)
    assert max(between(H200[kind], count) for count in names) >= 0.95 * max(H200[kind].values())
    assert 0 in names


def test_what_costs_next_to_nothing_is_given_up_soon():
    rates = searched(lambda count: between(H200["memory"], count), 32)
    assert max(rates) <= 8
    assert contenders(rates, None)[0] == 0
    assert len(contenders(rates, None)) >= 2, "something to compare it with"


@pytest.mark.parametrize(("enough", "expected"), [(200, 0), (700, 4), (1500, 8), (2000, 12), (9000, 18)])
def test_a_consumer_is_fed_with_the_fewest(enough, expected):
    rates = searched(lambda count: between(H200["decoding"], count), 32, enough)
    assert fewest(rates, enough) <= expected
    assert between(H200["decoding"], fewest(rates, enough)) >= min(enough, 0.97 * 2533) * 0.999
    if enough < 1000:
        assert max(rates) <= 8, "no more workers than are enough are started"


@pytest.mark.parametrize(
    ("rate", "tried", "best"),
    [
        (lambda count: 0.0, [4, 1, 0], 0),
        (lambda count: 100.0 * count if count < 3 else 50.0 * (count == 0), [4, 1, 2, 3, 0], 2),
        (lambda count: 0.0 if count > 4 else 100.0 * (count + 1), None, 4),
    ],
    ids=["nothing works", "the first count fails", "a later one fails"],
)
def test_a_count_that_fails_ends_the_doubling_and_one_worker_may_work(rate, tried, best):
    rates = searched(rate, 32)
    assert list(rates) == (tried or list(rates))
    assert max(rates) <= 8
    assert fewest(rates) == best


def test_no_workers_are_of_interest():
    assert set(searched(lambda count: 1.0, 0)) == {0}


def test_an_epoch_of_few_batches_is_divided_evenly():
    assert [even(count, 16) for count in (1, 5, 7, 8, 13, 15, 16)] == [1, 4, 6, 8, 8, 8, 16]
    rates = searched(lambda count: between(H200["decoding"], count), 16, epoch=16)
    assert set(rates) <= {0, 1, 2, 3, 4, 6, 8, 16}
    assert fewest(rates) == 16


def test_a_consumer_with_a_step_takes_any_number():
    rates = searched(lambda count: 1 + count, 32, enough=20, epoch=33)
    assert 17 < fewest(rates, 20) <= 24


def test_between_two_counts_that_are_known_the_other_side_is_looked_at():
    rates = searched(lambda count: {6: 6.0, 7: 7.0, 8: 6.8, 11: 6.2}.get(count, 0.9 * min(count, 6)), 12, epoch=32)
    assert fewest(rates) == 7


@pytest.mark.slow
@given(st.integers(1, 64), st.integers(1, 1 << 20))
def test_no_fewer_workers_make_an_epoch_in_as_many_rounds(count, epoch):
    def rounds(workers):
        return -(-epoch // workers)

    fewer = even(count, epoch)
    assert 1 <= fewer <= count
    assert rounds(fewer) == rounds(count)
    assert fewer == 1 or rounds(fewer - 1) > rounds(count)


@pytest.mark.slow
@settings(max_examples=300)
@given(epoch=st.integers(1, 200), limit=st.integers(1, 64), single=st.floats(0.02, 1.0), seed=st.integers(0, 9))
def test_the_search_ends_whatever_an_epoch_holds(epoch, limit, single, seed):
    noise = random.Random(seed)
    rates = searched(lambda count: max(1, count * single) * noise.gauss(1, 0.2), min(limit, epoch), epoch=epoch)
    assert len(rates) <= 8 + 2 * limit.bit_length()
    assert all(count == even(count, epoch) for count in rates)


@pytest.mark.slow
@settings(max_examples=300)
@given(cpus=st.integers(1, 64), single=st.floats(0.02, 1.0), most=st.floats(1.0, 64.0), decline=st.floats(0.0, 0.02))
def test_curves_that_rise_to_a_point_and_fall(cpus, single, most, decline):
    """A worker delivers `single` of the training process's rate; together they reach `most` of it, then less."""

    def rate(count):
        return 1.0 if count == 0 else min(count * single, most) * (1 - decline) ** max(0, count - most / single)

    limit = 2 * cpus
    rates = searched(rate, limit)
    assert set(rates) <= set(range(limit + 1))
    found = rate(fewest(rates))
    assert found >= 0.85 * max(map(rate, range(limit + 1))), "a peak that falls off to both sides is met to a quarter"
    assert len(rates) <= 8 + 2 * limit.bit_length()


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(0, 64), st.lists(st.floats(1, 1e6), min_size=1, max_size=3), min_size=1),
    st.integers(2, 6),
    st.integers(0, 200),
)
def test_contenders_hold_the_best_choice_and_what_it_is_held_against(rates, most, workers):
    names = contenders(rates, None, most=most, workers=workers)
    assert fewest(rates) in names
    assert (0 in names) == (0 in rates)
    assert names == sorted(set(names))
    assert set(names) <= set(rates)
    assert len(names) <= most
    assert len(names) >= 2 or 0 not in rates or len(rates) == 1
    assert sum(names) <= workers or len(names) <= 2
    best = max(median(samples) for samples in rates.values())
    assert median(rates[fewest(rates)]) * 1.03 >= best


@pytest.mark.parametrize(("seconds", "most"), [(0, 2), (26, 2), (27, 3), (47, 3), (48, 4), (72, 6), (1000, 6)])
def test_two_counts_besides_none_are_timed_as_soon_as_there_is_time_for_nine_rounds(seconds, most):
    rates = {0: [10.0]} | {count: [100.0] for count in (4, 8, 12, 16, 20, 24)}
    assert len(affordable(rates, dict.fromkeys(rates, 1.0), seconds)) == most


def test_what_takes_long_leaves_time_for_fewer():
    rates = {0: [10.0], 16: [100.0], 32: [120.0]}
    assert affordable(rates, {0: 0.1, 16: 0.15, 32: 0.25}, 4.6) == [0, 16, 32]
    assert affordable(rates, {0: 0.1, 16: 0.15, 32: 0.35}, 4.6) == [0, 32]


@pytest.mark.parametrize(
    ("cpu", "workers"),
    [
        ({"budget": 16, "logical_count": 16, "quota": None}, 2.5),
        ({"budget": 16, "logical_count": 16, "quota": 16.0}, 1),
        ({"budget": 16, "logical_count": 64, "quota": None}, 1),
        ({"budget": 2, "logical_count": 2, "quota": None}, 1),
    ],
)
def test_more_workers_than_cpus_are_worth_trying_where_there_are_many_cpus_and_nothing_confines_it(cpu, workers):
    assert per_cpu(replace(facts_of("cpu-only").cpu, **cpu)) == workers


def batches(per_worker: float, step: float, cpus: int = 16) -> Any:
    """The steps/s with workers of which each makes so many batches/s, if a step takes `step` seconds."""

    def rate(workers: int) -> float:
        if not workers:
            return 1 / (step + 1 / per_worker)
        return min(1 / step, per_worker * min(workers, cpus))

    return rate


@pytest.mark.parametrize(
    ("rate", "most", "enough", "expected"),
    [
        (batches(10, 0.02), 32, 50.0, {5, 6}),
        (batches(10, 0.001), 32, 1000.0, {16}),
        (lambda workers: 10.0 if workers else 12.0, 8, 100.0, {0}),
    ],
    ids=["the fewest that are enough", "the fewest that are nearly the best", "none where workers bring nothing"],
)
def test_the_best_number_of_workers(rate: Any, most: int, enough: float, expected: set[int]) -> None:
    assert fewest(searched(rate, most, enough, 1000), enough) in expected


@pytest.mark.parametrize("most", [0, 1, 2])
def test_one_number_is_tried_at_the_least_and_what_was_seen_counts_where_time_is_over(most: int) -> None:
    asked: list[int] = []

    def rate(workers: int) -> float:
        asked.append(workers)
        return float(batches(10, 0.001)(workers))

    rates = sampled(search(32, 1000.0, 1000), rate, lambda: len(asked) >= most)
    assert fewest(rates, 1000.0) == max(asked)
    assert asked[-1] == 0
    assert len(asked) == max(most, 1) + 1
