"""What samples allow to be said: an exact interval, and a verdict that does not cry gain at noise."""

import math
import random
from itertools import pairwise

import noise
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.measurement import LOOKS, MORE_LOOKS, Comparison, Measurement, comparison_of, median_interval, rounded

SAMPLES = st.lists(st.floats(0.001, 1e6), min_size=8, max_size=32)


def row(*samples):
    return Measurement(bench="conv", metric="throughput", unit="TFLOP/s", samples=samples, device="cuda:0")


@pytest.mark.parametrize(("n", "low", "high"), [(8, 1, 8), (11, 1, 11), (12, 2, 11), (20, 4, 17), (32, 9, 24)])
def test_the_interval_is_of_order_statistics(n, low, high):
    samples = list(range(1, n + 1))
    random.Random(n).shuffle(samples)
    assert median_interval(samples) == (low, high)


@pytest.mark.parametrize("n", range(8))
def test_fewer_than_8_samples_have_no_interval(n):
    assert median_interval(range(n)) is None
    assert comparison_of([1.1] * n) is None


@pytest.mark.parametrize("n", range(8, 33))
def test_the_interval_is_the_narrowest_that_reaches_99_percent(n):
    low, high = median_interval(range(1, n + 1))

    def missed(k):  # the median lies outside when fewer than k samples fall on one side of it
        return 2 * sum(math.comb(n, side) for side in range(k)) / 2**n

    assert low + high == n + 1
    assert missed(low) <= 0.01 < missed(low + 1)


@pytest.mark.slow
@given(SAMPLES)
def test_the_interval_encloses_the_median_and_does_not_depend_on_order(samples):
    low, high = median_interval(samples)
    assert low <= row(*samples).median <= high
    assert median_interval(samples[::-1]) == (low, high)


@pytest.mark.slow
@pytest.mark.parametrize("n", LOOKS)
@pytest.mark.parametrize("spread", [0.02, 1.0])
def test_the_interval_covers_the_true_median_99_times_in_100(n, spread):
    rng = random.Random(n)
    covered = 0
    for _ in range(4000):
        low, high = median_interval([rng.lognormvariate(0, spread) for _ in range(n)])
        covered += low <= 1 <= high
    assert covered / 4000 >= 0.987


def test_a_gain_of_5_percent_is_found_in_2_percent_noise_and_a_loss_is_never_called_one():
    machine = noise.MACHINES["scatter of 2 %"]
    assert noise.share_of_gains(machine, gain=1.05, times=1000) > 0.9
    assert noise.share_of_gains(machine, gain=0.95, times=1000) == 0


@pytest.mark.parametrize(
    ("ratio", "low", "high", "verdict"),
    [
        (1.10, 1.05, 1.15, "gain"),
        (1.031, 1.001, 1.06, "gain"),
        (1.10, 0.99, 1.20, "undecided"),
        (1.10, 1.00, 1.20, "undecided"),
        (1.02, 1.01, 1.03, "undecided"),
        (1.02, 1.01, 1.04, "undecided"),
        (1.02, 1.01, 1.029, "no gain"),
        (0.90, 0.85, 0.95, "no gain"),
    ],
)
def test_verdicts(ratio, low, high, verdict):
    assert Comparison(ratio=ratio, low=low, high=high, pairs=12).verdict == verdict


def test_two_rows_are_compared_pair_by_pair():
    drifting = [1.0 + index / 10 for index in range(12)]
    found = row(*(2 * speed for speed in drifting)).against(row(*drifting))
    assert (found.ratio, found.interval, found.pairs, found.verdict) == (2.0, (2.0, 2.0), 12, "gain")


def test_pairs_with_a_zero_are_left_out():
    assert row(*[2.0] * 12).against(row(0.0, *[1.0] * 11)).pairs == 11
    assert row(*[0.0] * 5, *[1.9] * 7).against(row(*[1.0] * 12)) is None


def test_workloads_are_pooled_by_the_geometric_mean_of_each_round():
    ones = row(*[1.0] * 12)
    assert row(*[4.0] * 12).pooled(ones, [(ones, ones)]).ratio == 2.0


@pytest.mark.parametrize(
    ("ratios", "interval"),
    [
        ([3.0] * 3, None),
        ([2.5, 3.0, 4.0, 6.0], (2.5, 6.0)),
        ([0.4, 0.3, 0.2, 0.1], (0.1, 0.4)),
        ([1.9, 3.0, 4.0, 6.0], None),
        ([0.2, 3.0, 4.0, 6.0, 6.0], None),
        ([0.2, 3.0, 4.0, 5.0, 6.0, 6.0], (3.0, 6.0)),
        ([0.2, 0.5, 3.0, 4.0, 5.0, 6.0, 6.0, 6.0], (3.0, 6.0)),
        ([0.2, 0.4, 0.5, 3.0, 4.0, 6.0, 6.0, 6.0], (0.2, 6.0)),
        ([0.1, 0.2, 0.4, 0.5, *[3.0] * 8], (3.0, 3.0)),
    ],
)
def test_what_lies_far_apart_is_decided_by_few_pairs_or_in_spite_of_some_that_were_disturbed(ratios, interval):
    comparison = comparison_of(ratios)
    assert (comparison and comparison.interval) == interval


def test_where_the_usual_interval_decides_it_stands():
    assert comparison_of([*[1.04, 1.06] * 8, *[2.5] * 16]).interval == (1.06, 2.5)


@given(st.floats(1e-9, 1e12))
def test_rounding_keeps_four_digits_and_is_stable(value):
    assert rounded(value) == pytest.approx(value, rel=5.1e-4)
    assert rounded(rounded(value)) == rounded(value)


def test_looks_grow_and_each_has_an_interval():
    looks = (*LOOKS, *MORE_LOOKS)
    assert all(earlier < later for earlier, later in pairwise(looks))
    assert all(median_interval(range(pairs)) for pairs in looks)


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("machine", noise.MACHINES)
def test_on_no_machine_are_equal_settings_often_called_different(machine):
    made = noise.MACHINES[machine]
    assert noise.share_of_gains(made) < 0.0125
    assert noise.share_of_gains(made, pairs=4) < 0.006
    assert noise.share_of_gains(made, pairs=8) < 0.01
    assert noise.share_of_gains(made, looks=(*LOOKS, *MORE_LOOKS)) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("machine", noise.MACHINES)
def test_what_is_three_times_as_fast_is_seen_on_all_of_them(machine):
    assert noise.share_of_gains(noise.MACHINES[machine], gain=3.0, times=1000) > 0.9
