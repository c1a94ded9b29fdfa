"""Which of the combinations that took turns is to be taken."""

from typing import Any

import pytest

from gputune.search.choice import MORE_MEMORY, Tried, agreed, best_by_level, choice, far_behind, with_least_work
from gputune.search.combination import Combination


def arm(rate: float, peak: int | None = 1000, **values: Any) -> Tried:
    made = Tried(combination=Combination.of(values), stage="final")
    made.samples += [rate] * 12
    made.peaks += [] if peak is None else [peak]
    return made


@pytest.mark.parametrize(
    ("rate", "peak", "is_taken"), [(10.3, 2000, False), (11.0, 2000, True), (10.3, round(1000 * MORE_MEMORY), True)]
)
def test_more_memory_must_be_earned_but_for_a_little(rate: float, peak: int, is_taken: bool) -> None:
    frugal, greedy = arm(10.0), arm(rate, peak, cudnn_benchmark=True)
    assert choice([frugal, greedy], 1000) is (greedy if is_taken else frugal)


class TestEffect:
    def test_a_larger_effect_on_results_must_be_worth_it(self) -> None:
        lower = arm(10.0, matmul_precision="tf32")
        assert choice([lower, arm(10.2, amp_dtype="bfloat16")], 1000) is lower
        larger = arm(10.5, amp_dtype="bfloat16")
        assert choice([lower, larger], 1000) is larger

    def test_and_certain_where_that_is_asked_for(self) -> None:
        lower, larger = arm(10.0, matmul_precision="tf32"), arm(10.5, amp_dtype="bfloat16")
        assert choice([lower, larger], 1000, must_be_certain=True) is larger
        larger.samples[:4] = [9.5] * 4
        assert choice([lower, larger], 1000) is larger
        assert choice([lower, larger], 1000, must_be_certain=True) is lower

    def test_without_a_gpu_there_is_no_memory_to_look_at(self) -> None:
        fast = arm(11.0, None, fused_optimizer=True)
        assert choice([arm(10.0, None), fast], None) is fast


class TestTheGpusOwnTime:
    def arms(self, light: float, heavy: float) -> tuple[Tried, Tried]:
        one, other = arm(10.0, fused_optimizer=True), arm(10.4, sdpa_backend="flash")
        other.samples[:6] = [9.4] * 6
        other.samples[6:] = [11.4] * 6
        one.device_seconds, other.device_seconds = light, heavy
        return one, other

    @pytest.mark.parametrize(
        ("light", "heavy", "samples", "is_lighter"),
        [
            (0.015, 0.020, {}, True),
            (0.015, 0.020, {1: [11.0] * 12}, False),
            (0.0200, 0.0201, {}, False),
            (0.015, 0.020, {0: [9.0, 12.0] * 3 + [9.0] * 6}, False),
            (0.015, 0.020, {0: [10.0], 1: [10.1]}, True),
        ],
        ids=["less work", "certainly slower", "as much work", "its median is far behind", "too few rounds"],
    )
    def test_what_leaves_the_gpu_less_to_do_is_taken_unless_it_is_slower(
        self, light: float, heavy: float, samples: dict[int, list[float]], is_lighter: bool
    ) -> None:
        arms = self.arms(light, heavy)
        for place, rates in samples.items():
            arms[place].samples[:] = rates
        assert choice(arms, 1000) is arms[not is_lighter]

    def test_but_that_one_setting_more_is_faster_by_luck(self) -> None:
        one, other = self.arms(0.0200, 0.0201)
        more = Tried(combination=one.combination.plus("cudnn_benchmark", True), stage="final", samples=other.samples)
        more.device_seconds = 0.0199
        assert choice([one, more], 1000) is one
        more.samples[:6] = [10.3] * 6
        assert choice([one, more], 1000) is more

    def test_nor_does_what_could_not_be_traced(self) -> None:
        one, other = self.arms(0.015, 0.020)
        one.device_seconds = None
        assert choice([one, other], 1000) is other
        assert with_least_work([one, other]) == []

    def test_fewer_settings_are_taken_all_the_same(self) -> None:
        plain, one = arm(10.0), arm(10.05, fused_optimizer=True)
        plain.device_seconds, one.device_seconds = 0.02, 0.015
        assert choice([plain, one], 1000) is plain


@pytest.mark.parametrize(
    ("traces", "seconds"),
    [([0.02, 0.02], 0.02), ([0.02, 0.0201], 0.02005), ([0.02, 0.021], None), ([0.02, None], None), ([], None)],
)
def test_traces_that_differ_tell_nothing(traces: list[float | None], seconds: float | None) -> None:
    assert agreed(traces) == (seconds and pytest.approx(seconds))


def test_what_is_far_behind_is_dropped() -> None:
    slow = arm(5.0)
    assert far_behind([arm(10.0, fused_optimizer=True), slow, arm(9.5, compile=True)]) == [slow]


def test_what_was_faster_in_a_round_is_kept() -> None:
    disturbed = arm(5.0)
    disturbed.samples[3] = 11.0
    assert far_behind([arm(10.0, fused_optimizer=True), disturbed]) == []


def test_a_gain_has_an_interval() -> None:
    found = arm(20.0, fused_optimizer=True).against(arm(10.0))
    assert found is not None
    assert (found.ratio, found.interval, found.verdict) == (2.0, (2.0, 2.0), "gain")


def test_the_best_of_each_level() -> None:
    arms = [
        arm(10.0), arm(12.0, fused_optimizer=True), arm(20.0, fused_optimizer=True, matmul_precision="tf32"),
        arm(19.0, fused_optimizer=True, amp_dtype="bfloat16"),
    ]  # fmt: skip
    levels = {level: found.values for level, found in best_by_level(arms)}
    assert levels["exact"] == {}
    assert levels["rounding"] == {"fused_optimizer": True}
    assert levels["tf32"] == levels["mixed"] == {"fused_optimizer": True, "matmul_precision": "tf32"}
