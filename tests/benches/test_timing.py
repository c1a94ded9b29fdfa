"""Arms are timed in calibrated blocks, in the rounds of `gputune.rounds`, and no longer than they may be."""

import time

import pytest
from loaded import on_cpu

from gputune.benches._timing import Arm, Metric, in_turn, interleave, or_gap, race
from gputune.facts.gap import Gap
from gputune.rounds import against_first


def rows(arms, seconds):
    return interleave(on_cpu(), arms, seconds, Metric("test", "1/s"), block_seconds=0.015)


def sleeper(name, seconds, **more):
    return Arm(params={"name": name}, run=lambda: time.sleep(seconds), work=1, **more)


def test_samples_are_work_per_second_to_four_digits():
    (row,) = rows([sleeper("a", 0.005)], 0.4)
    assert 100 < row.median <= 200
    assert len(row.samples) >= 8
    assert all(float(f"{sample:.4g}") == sample for sample in row.samples)


@pytest.mark.timed
def test_a_clear_difference_ends_after_twelve_rounds():
    slow, fast = rows(against_first([sleeper("slow", 0.03), sleeper("fast", 0.003)]), 20)
    assert len(slow.samples) == len(fast.samples) == 12
    assert fast.against(slow).verdict == "gain"


@pytest.mark.timed
def test_time_is_kept_to():
    started = time.monotonic()
    rows([sleeper(str(number), 0.02) for number in range(4)], 0.8)
    assert time.monotonic() - started < 1.6


def test_without_time_for_a_round_there_is_no_row_but_a_gap():
    found = rows([sleeper("slow", 0.2)], 0.1)
    assert found == []
    assert or_gap(found, "bench.test", "it") == [
        Gap(fact="bench.test", reason="the budget ran out before it could be measured")
    ]


def test_before_and_after_surround_every_block_untimed():
    events = []
    arm = sleeper(
        "a", 0.004, before=lambda: events.append("before"), after=lambda: (events.append("after"), time.sleep(0.05))
    )
    (row,) = rows([arm], 1)
    assert events == ["before", "after"] * (len(events) // 2)
    assert row.median > 25
    assert or_gap([row], "bench.test", "it") == [row]


def test_a_race_leaves_what_may_win_and_what_is_kept_and_rounds_go_on_from_there():
    arms = [Arm(params={}, run=lambda rate=rate: rate, work=1) for rate in (1.0, 5.0, 9.0, 10.0)]
    left = race(arms, arms[:1], 60, 0.8)
    assert left == [arms[0], *arms[2:]]
    in_turn(against_first(left), 60)
    assert [len(arm.samples) for arm in arms] == [12, 4, 12, 12]
