"""Arms are measured in turn, in orders that favour none, and no longer than they may be."""

import itertools
import time
from collections import Counter
from itertools import pairwise

import pytest
from recorded import facts_of

from gputune.bench_process import Context
from gputune.benches._timing import Arm, _all_decided, _order, against_first, interleave, measurement, or_gap, ranked
from gputune.facts.gap import Gap


@pytest.fixture
def context():
    return Context(device="cpu", facts=facts_of("cpu-only"), seconds=1, budget="quick")


def rows(context, arms, seconds):
    return interleave(context, arms, seconds, lambda arm: measurement(context, "test", "1/s", arm), block_seconds=0.015)


def sleeper(name, seconds, **more):
    return Arm(params={"name": name}, run=lambda: time.sleep(seconds), work=1, **more)


def test_two_arms_alternate_a_b_b_a():
    a, b = sleeper("a", 0), sleeper("b", 0)
    assert [[arm.params["name"] for arm in _order([a, b], number)] for number in range(4)] == [
        ["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"],
    ]  # fmt: skip


def test_with_more_arms_none_always_follows_the_same_one():
    arms = [sleeper(str(number), 0) for number in range(5)]
    before = Counter(
        (first.params["name"], second.params["name"])
        for number in range(32)
        for order in [_order(arms, number)]
        for first, second in pairwise(order)
    )
    assert len(before) == 20  # every ordered pair occurs
    assert max(before.values()) <= 12


def test_an_order_and_its_reverse_follow_each_other():
    arms = [sleeper(str(number), 0) for number in range(5)]
    for number in range(0, 8, 2):
        assert _order(arms, number) == _order(arms, number + 1)[::-1]


def test_samples_are_work_per_second(context):
    (row,) = rows(context, [sleeper("a", 0.005)], 0.4)
    assert 100 < row.median <= 200
    assert len(row.samples) >= 8


@pytest.mark.timed
def test_a_clear_difference_ends_after_twelve_rounds(context):
    slow, fast = rows(context, against_first([sleeper("slow", 0.006), sleeper("fast", 0.003)]), 20)
    assert len(slow.samples) == len(fast.samples) == 12
    assert fast.against(slow).verdict == "gain"


@pytest.mark.timed
def test_what_is_not_decided_against_its_own_baseline_goes_on(context):
    """Two workloads that differ much, of which the second's two settings differ less than can be told in 12 rounds."""
    factors = itertools.cycle([0.8, 1.2])
    now = {"factor": 1.0}
    first, other = sleeper("first", 0.02), sleeper("other", 0.003)
    undecided = Arm(
        params={"name": "undecided"},
        run=lambda: time.sleep(0.003 * now["factor"]),
        work=1,
        before=lambda: now.update(factor=next(factors)),
        baseline=other,
    )
    result = rows(context, [first, other, undecided], 4)
    assert len(result[0].samples) > 12


@pytest.mark.timed
def test_time_is_kept_to(context):
    started = time.monotonic()
    rows(context, [sleeper(str(number), 0.02) for number in range(4)], 0.8)
    assert time.monotonic() - started < 1.6


def test_without_time_for_a_round_there_is_no_row(context):
    assert rows(context, [sleeper("slow", 0.2)], 0.1) == []


def test_before_and_after_surround_every_block_untimed(context):
    events = []
    arm = sleeper(
        "a", 0.004, before=lambda: events.append("before"), after=lambda: (events.append("after"), time.sleep(0.01))
    )
    (row,) = rows(context, [arm], 0.6)
    assert events == ["before", "after"] * (len(events) // 2)
    assert row.median > 100


def test_samples_are_kept_to_four_digits(context):
    (row,) = rows(context, [sleeper("a", 0.004)], 0.3)
    assert all(float(f"{sample:.4g}") == sample for sample in row.samples)


def arm_of(*samples):
    arm = sleeper("", 0)
    arm.samples = list(samples)
    return arm


WILD = (8.0, 12.0) * 6


def test_of_ranked_arms_the_fastest_is_decided_against_each():
    """Both are clearly faster than the first, which is all that the first asks; which of them is faster is open."""
    slow, one, other = (arm_of(*samples) for samples in ([1.0] * 12, [10.0] * 12, WILD))
    assert _all_decided(against_first([slow, one, other]))
    assert not _all_decided(ranked([slow, one, other]))
    assert _all_decided(ranked([slow, one, arm_of(*[9.0] * 12)]))


@pytest.mark.parametrize(
    ("samples", "decided"),
    [
        ((1.02, 1.3) * 6, False),
        ((1 / 1.02, 1 / 1.3) * 6, False),
        ((1.1, 1.3) * 6, True),
        ((1 / 1.1, 1 / 1.3) * 6, True),
        ((1.02, 1.06) * 6, True),
        ((1.0, 1.02) * 6, True),
    ],
)
def test_more_than_a_gain_is_measured_until_it_is_certain_where_it_counts(samples, decided):
    first, other = arm_of(*[1.0] * 12), arm_of(*samples)
    against_first([first, other])
    assert _all_decided([first, other]), "as a gain or none it is"
    other.worth = 1.05
    assert _all_decided([first, other]) is decided


def test_what_the_time_did_not_suffice_for_is_a_gap(context):
    rows_had = rows(context, [sleeper("a", 0.004)], 0.3)
    assert or_gap(rows_had, "bench.test", "it") == rows_had
    assert or_gap([], "bench.test", "it") == [Gap(fact="bench.test", reason="the budget ran out before it")]
