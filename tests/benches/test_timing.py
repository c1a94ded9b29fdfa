"""Arms are timed in calibrated blocks, in the rounds of `gputune.search.rounds`, and no longer than they may be."""

import pytest
from loaded import on_cpu

from gputune.benches import _timing
from gputune.benches._timing import Arm, Metric, in_turn, interleave, or_gap, race, shared_out
from gputune.facts.gap import Gap
from gputune.search.rounds import against_first


class Clock:
    """Stands in for the module `time`: sleeping takes exactly as long, and nothing else takes any time."""

    now = 0.0

    def sleep(self, seconds):
        self.now += seconds

    def monotonic(self):
        return self.now

    perf_counter = monotonic


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_timing, "time", clock)
    return clock


def rows(arms, seconds):
    return interleave(on_cpu(), arms, seconds, Metric("test", "1/s"), block_seconds=0.015)


def sleeper(clock, name, seconds, **more):
    return Arm(params={"name": name}, run=lambda: clock.sleep(seconds), work=1, **more)


def test_samples_are_work_per_second_to_four_digits(clock):
    (row,) = rows([sleeper(clock, "a", 0.003)], 20)
    assert row.samples == (333.3,) * 12


def test_a_clear_difference_ends_after_twelve_rounds(clock):
    slow, fast = rows(against_first([sleeper(clock, "slow", 0.03), sleeper(clock, "fast", 0.003)]), 20)
    assert len(slow.samples) == len(fast.samples) == 12
    assert fast.against(slow).verdict == "gain"


def test_time_is_kept_to(clock):
    found = rows([sleeper(clock, str(number), 0.02) for number in range(4)], 0.8)
    assert [len(row.samples) for row in found] == [6, 6, 6, 6]
    assert clock.now == pytest.approx(0.8, abs=0.08)


def test_without_time_for_a_round_there_is_no_row_but_a_gap(clock):
    found = rows([sleeper(clock, "slow", 0.2)], 0.1)
    assert found == []
    assert or_gap(found, "bench.test", "it") == [
        Gap(fact="bench.test", reason="the budget ran out before it could be measured")
    ]


def test_once_the_time_is_over_no_arm_is_tried_any_more(clock):
    assert rows([sleeper(clock, str(number), 2.0) for number in range(4)], 3.0) == []
    assert clock.now == 4.0, "one arm, twice: to warm it up and to time it"


def test_no_round_begins_that_could_not_be_kept(clock):
    assert rows([sleeper(clock, "slow", 0.5)], 1.6) == []
    assert clock.now == 1.0


def test_before_and_after_surround_every_block_untimed(clock):
    events = []

    def noted(event):
        events.append(event)
        clock.sleep(0.05)

    arm = sleeper(clock, "a", 0.004, before=lambda: noted("before"), after=lambda: noted("after"))
    (row,) = rows([arm], 5)
    assert events == ["before", "after"] * (len(events) // 2)
    assert row.samples == (250.0,) * 12
    assert or_gap([row], "bench.test", "it") == [row]


@pytest.mark.parametrize(("takes", "given"), [(0.5, [4, 3, 4.5]), (1, [4, 2, 2]), (3, [4, 0, 0])])
def test_what_one_part_leaves_of_its_seconds_is_for_those_after_it(clock, takes, given):
    shares = []
    for _, seconds in shared_out("abc", 8.0, {"a": 2, "b": 1, "c": 1}.__getitem__):
        shares.append(seconds)
        clock.sleep(takes * seconds)
    assert shares == given


def test_rounds_go_on_from_where_a_race_ended():
    arms = [Arm(params={}, run=lambda rate=rate: rate, work=1) for rate in (1.0, 5.0, 9.0, 10.0)]
    race(arms, 60)
    assert [len(arm.samples) for arm in arms] == [4, 4, 4, 4]
    in_turn(against_first(arms[2:]), 60)
    assert [len(arm.samples) for arm in arms] == [4, 4, 12, 12]
