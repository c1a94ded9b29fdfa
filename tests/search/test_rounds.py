"""Rounds as plain data: the order of arms, the samples that are kept, when a comparison is decided and when it ends."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputune.measurement import LOOKS, MORE_LOOKS
from gputune.search.rounds import Arm, Rounds, against_first, decided, order, ranked


def arms(count):
    return [Arm() for _ in range(count)]


def arm_of(*samples):
    return Arm(samples=list(samples))


def run(rounds, rate=lambda arm: 1.0, seconds=1.0):
    ran, now = [], 0.0
    while arm := rounds.next(now):
        ran.append(arm)
        now += seconds
        rounds.push(rate(arm))
    return ran, now


def test_two_arms_alternate_a_b_b_a():
    a, b = pair = arms(2)
    assert [order(pair, number) for number in range(4)] == [[a, b], [b, a], [a, b], [b, a]]


def test_with_more_arms_none_always_follows_the_same_one():
    five = arms(5)
    before = Counter(neighbours for number in range(32) for neighbours in pairwise(order(five, number)))
    assert len(before) == 20, "every ordered pair occurs"
    assert max(before.values()) <= 12
    assert len({tuple(order(five, number, shuffled=False)) for number in range(32)}) == 2


@given(st.integers(2, 9), st.integers(0, 32))
def test_an_order_is_the_same_in_every_run_visits_all_once_and_is_then_reversed(count, number):
    these, others = arms(count), arms(count)
    ordered = order(these, number)
    assert [these.index(arm) for arm in ordered] == [others.index(arm) for arm in order(others, number)]
    assert sorted(map(these.index, ordered)) == list(range(count))
    assert order(these, 2 * number) == order(these, 2 * number + 1)[::-1]


def test_the_next_arm_stays_the_same_until_its_sample_is_pushed():
    rounds = Rounds(arms=arms(3))
    assert rounds.next(0) is rounds.next(1) is not None


def test_equal_arms_are_decided_at_the_first_look():
    rounds = Rounds(arms=against_first(arms(2)))
    ran, _ = run(rounds)
    assert ran == [arm for number in range(12) for arm in order(rounds.arms, number)]
    assert [len(arm.samples) for arm in rounds.arms] == [12, 12]
    assert decided(rounds.arms)


def test_arms_that_scatter_are_never_decided_and_end_with_the_last_look():
    scatter = iter([8.0, 12.0] * 32)
    rounds = Rounds(arms=against_first(arms(2)))
    run(rounds, lambda arm: next(scatter))
    assert not decided(rounds.arms)
    assert {len(arm.samples) for arm in rounds.arms} == {LOOKS[-1]}


@pytest.mark.parametrize(("fastest", "kept"), [((8.0, 12.0), MORE_LOOKS[-1]), ((20.0, 20.0), LOOKS[-1])])
def test_more_rounds_than_that_are_only_for_the_fastest(fastest, kept):
    first, wild, fast = ranked(arms(3))
    rounds = Rounds(arms=[first, wild, fast], most=MORE_LOOKS[-1])
    rate = {id(first): (10.0, 10.0), id(wild): (8.0, 12.0), id(fast): fastest}
    run(rounds, lambda arm: rate[id(arm)][len(arm.samples) % 2])
    assert {len(arm.samples) for arm in rounds.arms} == {kept}


@pytest.mark.slow
@given(st.integers(1, 6), st.floats(0, 100), st.floats(0, 100))
def test_all_arms_have_as_many_samples_and_no_round_is_begun_that_would_pass_the_deadline(count, first, last):
    rounds = Rounds(arms=ranked(arms(count)), deadline=first, latest=last)
    ran, now = run(rounds)
    kept = {len(arm.samples) for arm in rounds.arms}
    assert kept == {len(ran) // count}
    assert now <= max(first, last, count)
    assert now + count > first or kept == {12}
    assert rounds.next(now) is None


@pytest.mark.parametrize(("latest", "kept"), [(0, 3), (5, 5), (99, 8)])
def test_what_can_say_nothing_yet_may_take_longer(latest, kept):
    rounds = Rounds(arms=arms(1), deadline=3, latest=latest)
    run(rounds)
    assert len(rounds.arms[0].samples) == kept


@pytest.mark.parametrize(("scatter", "kept"), [((1.0, 1.3), 9), ((1.0, 5.0), 15), ((5.0, 5.0), 9)])
def test_samples_that_disagree_in_scale_are_looked_at_again(scatter, kept):
    """The second of two arms is once as fast as the first and once five times; until the last moment, if need be."""
    first, second = against_first(arms(2))
    rounds = Rounds(arms=[first, second], deadline=18, latest=30)
    run(rounds, lambda arm: 1.0 if arm is first else scatter[len(arm.samples) % 2])
    assert len(first.samples) == kept


@pytest.mark.parametrize(("reserve", "kept"), [(1, 2), (0, 3)])
def test_a_round_may_begin_as_long_as_its_reserve_is_left(reserve, kept):
    rounds = Rounds(arms=arms(1), deadline=2.5, reserve=reserve)
    run(rounds)
    assert len(rounds.arms[0].samples) == kept


def test_rounds_go_on_with_the_samples_that_arms_have():
    two = [arm_of(1.0, 1.0, 1.0), arm_of(1.0, 1.0, 1.0)]
    ran, _ = run(Rounds(arms=two, most=5))
    assert ran == [*order(two, 3), *order(two, 4)]


@pytest.mark.slow
@given(st.integers(1, 5), st.integers(0, 40), st.data())
def test_an_arm_that_fails_is_dropped_at_any_time_and_the_others_go_on(count, blocks, data):
    rounds = Rounds(arms=ranked(arms(count)), most=10)
    failing = data.draw(st.sampled_from(rounds.arms))
    for _ in range(blocks):
        if rounds.next(0):
            rounds.push(1.0)
    rounds.drop(failing)
    ran, _ = run(rounds)
    assert failing not in ran
    assert {len(arm.samples) for arm in rounds.arms} == ({10} if count > 1 else set())


def test_the_sample_that_a_dropped_arm_still_owed_ends_the_round():
    first, second = Arm(), Arm()
    rounds = Rounds(arms=[first, second])
    rounds.next(0)
    rounds.push(7.0)
    rounds.drop(second)
    assert (first.samples, rounds.arms) == ([7.0], [first])


WILD = (8.0, 12.0) * 6


def test_of_ranked_arms_the_fastest_is_decided_against_each():
    """Both are clearly faster than the first, which is all that the first asks; which of them is faster is open."""
    slow, fast, wild = (arm_of(*samples) for samples in ([1.0] * 12, [10.0] * 12, WILD))
    assert decided(against_first([slow, fast, wild]))
    assert not decided(ranked([slow, fast, wild]))
    assert decided(ranked([slow, fast, arm_of(*[9.0] * 12)]))


def test_each_arm_is_decided_against_its_own_baseline_which_may_be_dropped():
    slow, fast, wild = arm_of(*[1.0] * 12), arm_of(*[10.0] * 12), arm_of(*WILD)
    wild.baseline = fast
    assert not decided([slow, fast, wild])
    assert decided([slow, wild])


@pytest.mark.parametrize(
    ("samples", "certain"),
    [
        ((1.02, 1.3) * 6, False),
        ((1 / 1.02, 1 / 1.3) * 6, False),
        ((1.1, 1.3) * 6, True),
        ((1 / 1.1, 1 / 1.3) * 6, True),
        ((1.02, 1.06) * 6, True),
        ((1.0, 1.02) * 6, True),
    ],
)
def test_more_than_a_gain_is_measured_until_it_is_certain_where_it_counts(samples, certain):
    pair = against_first([arm_of(*[1.0] * 12), arm_of(*samples)])
    assert decided(pair), "as a gain or none it is"
    pair[1].worth = 1.05
    assert decided(pair) is certain
