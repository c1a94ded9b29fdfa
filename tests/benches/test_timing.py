"""Arms are timed in calibrated blocks, in the rounds of `gputune.rounds`, and no longer than they may be."""

import time

import pytest
from recorded import facts_of

from gputune.bench_process import Context
from gputune.benches._timing import Arm, Metric, in_turn, interleave, or_gap, race
from gputune.facts.gap import Gap
from gputune.rounds import against_first


@pytest.fixture
def context():
    return Context(device="cpu", facts=facts_of("cpu-only"), seconds=1, budget="quick")


def rows(context, arms, seconds):
    return interleave(context, arms, seconds, Metric("test", "1/s"), block_seconds=0.015)


def sleeper(name, seconds, **more):
    return Arm(params={"name": name}, run=lambda: time.sleep(seconds), work=1, **more)


def test_samples_are_work_per_second_to_four_digits(context):
    (row,) = rows(context, [sleeper("a", 0.005)], 0.4)
    assert 100 < row.median <= 200
    assert len(row.samples) >= 8
    assert all(float(f"{sample:.4g}") == sample for sample in row.samples)


@pytest.mark.timed
def test_a_clear_difference_ends_after_twelve_rounds(context):
    slow, fast = rows(context, against_first([sleeper("slow", 0.03), sleeper("fast", 0.003)]), 20)
    assert len(slow.samples) == len(fast.samples) == 12
    assert fast.against(slow).verdict == "gain"


@pytest.mark.timed
def test_time_is_kept_to(context):
    started = time.monotonic()
    rows(context, [sleeper(str(number), 0.02) for number in range(4)], 0.8)
    assert time.monotonic() - started < 1.6


def test_without_time_for_a_round_there_is_no_row_but_a_gap(context):
    found = rows(context, [sleeper("slow", 0.2)], 0.1)
    assert found == []
    assert or_gap(found, "bench.test", "it") == [Gap(fact="bench.test", reason="the budget ran out before it")]


def test_before_and_after_surround_every_block_untimed(context):
    events = []
    arm = sleeper(
        "a", 0.004, before=lambda: events.append("before"), after=lambda: (events.append("after"), time.sleep(0.05))
    )
    (row,) = rows(context, [arm], 1)
    assert events == ["before", "after"] * (len(events) // 2)
    assert row.median > 25
    assert or_gap([row], "bench.test", "it") == [row]


def test_a_race_leaves_what_may_win_and_what_is_kept_and_rounds_go_on_from_there():
    arms = [Arm(params={}, run=lambda rate=rate: rate, work=1) for rate in (1.0, 5.0, 9.0, 10.0)]
    left = race(arms, arms[:1], 60, 0.8)
    assert left == [arms[0], *arms[2:]]
    in_turn(against_first(left), 60)
    assert [len(arm.samples) for arm in arms] == [12, 4, 12, 12]
