"""The search for the best combination, with programs whose step times are made up."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from gputune.measurement import LOOKS
from gputune.trials.combination import DEFAULT, Combination
from gputune.trials.search import FIRST_LOOK, MORE_MEMORY, Block, Search, Tried, behind, by_level, choice, gain

ALL: Mapping[str, Any] = {
    "matmul_precision": "tf32", "amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True,
    "compile": True,
}  # fmt: skip
Factors = Mapping[str, float]


class Program:
    """Each setting makes a step so many times as fast; with noise, and with a memory of 1000 bytes."""

    def __init__(self, factors: Factors, memory: Factors | None = None, noise: float = 0.01) -> None:
        self.factors, self.memory, self.noise = factors, memory or {}, noise
        self.blocks = 0
        self.compiled: set[Combination] = set()
        self._random = random.Random(1)

    def measure(self, combination: Combination) -> Block:
        self.blocks += 1
        rate, peak = 10.0 * self._random.gauss(1, self.noise), 1000.0
        for name, _ in combination.items:
            rate *= self.factors.get(name, 1.0)
            peak *= self.memory.get(name, 1.0)
        if "compile" in combination.values:
            self.compiled.add(combination)
        return Block(rate=rate, peak_bytes=round(peak))

    def search(self, **more: Any) -> Search:
        return Search(measure=self.measure, used=lambda: self.blocks / 200, **more)


class Limited(Program):
    """An MLP on an H100: without the fused optimizer every precision but FP32 takes as long, and with it TF32 wins,
    since autocast costs the host more than it saves.
    """

    def __init__(self, noise: float) -> None:
        super().__init__({}, noise=noise)

    def measure(self, combination: Combination) -> Block:
        tf32, half = ("matmul_precision" in combination.values, "amp_dtype" in combination.values)
        seconds = 1.70 if half else 1.36 if tf32 else 3.7
        if "fused_optimizer" not in combination.values:
            seconds = 2.33 if half else 2.37 if tf32 else 4.6
        if "compile" in combination.values:
            seconds += 0.3
        block = super().measure(combination)
        return Block(rate=block.rate / seconds, peak_bytes=block.peak_bytes)


class HostLimited(Program):
    """A BERT beside a slow host, which needs 50 ms for a step, and compiled 20."""

    def __init__(self, noise: float) -> None:
        super().__init__({}, noise=noise)

    def measure(self, combination: Combination) -> Block:
        device = 20 if "amp_dtype" in combination.values else 40 if "matmul_precision" in combination.values else 120
        host = 20 if "compile" in combination.values else 50
        block = super().measure(combination)
        return Block(rate=block.rate / max(device, host), peak_bytes=block.peak_bytes)


def best(program: Program, candidates: Mapping[str, Any] = ALL, *, images: bool = True, **more: Any) -> Combination:
    return program.search(**more).best(candidates, images=images)


def arm(rate: float, peak: int | None = 1000, **values: Any) -> Tried:
    made = Tried(combination=Combination.of(values), stage="final")
    made.samples += [rate] * 12
    made.peaks += [] if peak is None else [peak]
    return made


class TestBest:
    def test_what_gains_is_combined(self) -> None:
        found = best(Program({"amp_dtype": 2.0, "channels_last": 1.3, "fused_optimizer": 1.1, "compile": 1.2}))
        assert found.values == {
            "amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True, "compile": True,
        }  # fmt: skip

    def test_threads_are_one_of_the_options(self) -> None:
        candidates = {"fused_optimizer": True, "omp_threads": 1}
        found = best(Program({"omp_threads": 1.5, "fused_optimizer": 1.2}), candidates)
        assert str(found) == "fused_optimizer + 1 thread"

    def test_what_does_not_is_left_out(self) -> None:
        slower = dict.fromkeys(ALL, 0.9)
        assert best(Program(slower)) == DEFAULT

    def test_of_equal_ones_the_fewer_settings_are_taken(self) -> None:
        assert best(Program({}, noise=0.001)) == DEFAULT

    @pytest.mark.parametrize("seed", range(5))
    def test_the_better_precision_is_found_whatever_the_noise(self, seed: int) -> None:
        program = Program({"matmul_precision": 2.2, "amp_dtype": 1.8, "fused_optimizer": 1.4}, noise=0.03)
        program._random.seed(seed)
        found = best(program, images=False)
        assert found.values["matmul_precision"] == "tf32"
        assert found.values["fused_optimizer"] is True

    @pytest.mark.parametrize("seed", range(5))
    def test_a_precision_is_looked_at_again_once_the_limit_of_all_is_gone(self, seed: int) -> None:
        program = Limited(noise=0.02)
        program._random.seed(seed)
        assert best(program, images=False).values == {"matmul_precision": "tf32", "fused_optimizer": True}

    def test_compiling_must_be_worth_its_first_step(self) -> None:
        assert best(Program({"compile": 1.02}, noise=0.001)) == DEFAULT
        assert "compile" in best(Program({"compile": 1.04}, noise=0.001)).values

    def test_where_the_host_limits_all_precisions_the_one_with_the_least_work_is_compiled(self) -> None:
        found = best(HostLimited(noise=0.001), images=False)
        assert {"amp_dtype", "compile"} <= set(found.values)

    @pytest.mark.parametrize("seed", range(5))
    def test_compiling_is_compared_until_decided(self, seed: int) -> None:
        program = Program({"amp_dtype": 2.0, "compile": 1.08}, noise=0.04)
        program._random.seed(seed)
        search = program.search()
        search.best({name: ALL[name] for name in program.factors}, images=False)
        rounds = {len(one.samples) for one in search.tried if one.stage == "compile"}
        assert rounds <= {FIRST_LOOK, *LOOKS}

    def test_only_the_best_is_compiled(self) -> None:
        program = Program({"amp_dtype": 2.0, "compile": 1.5})
        best(program)
        assert len(program.compiled) == 1

    def test_without_images_no_layout_is_tried(self) -> None:
        program = Program({"channels_last": 3.0})
        assert "channels_last" not in best(program, images=False).values

    def test_what_failed_before_is_left_out(self) -> None:
        bad = Combination.of({"amp_dtype": "bfloat16", "matmul_precision": "tf32"})
        search = Program({"amp_dtype": 2.0, "matmul_precision": 1.5}).search(left_out=bad.__eq__)
        assert search.best(ALL, images=False) == Combination.of({"amp_dtype": "bfloat16"})
        assert bad not in [one.combination for one in search.tried]

    def test_it_keeps_to_its_share(self) -> None:
        program = Program(dict.fromkeys(ALL, 1.1), noise=0.05)
        search = program.search()
        search.final(search.best(ALL, images=True))
        assert program.blocks <= 205


class TestFinal:
    def test_it_has_the_winner_and_what_is_left_of_it_within_each_level(self) -> None:
        program = Program({"amp_dtype": 2.0, "fused_optimizer": 1.2, "compile": 1.2})
        search = program.search()
        winner = Combination.of({"amp_dtype": "bfloat16", "fused_optimizer": True, "compile": True})
        arms = [one.combination for one in search.final(winner)]
        fused = Combination.of({"fused_optimizer": True})
        assert arms == [DEFAULT, fused, winner.minus("compile"), winner]
        assert program.compiled == {winner}

    def test_and_what_was_as_fast_with_a_lower_effect(self) -> None:
        program = Program({"amp_dtype": 1.26, "matmul_precision": 1.2, "fused_optimizer": 1.2}, noise=0.001)
        search = program.search(left_out=lambda one: {"amp_dtype", "matmul_precision"} <= set(one.values))
        winner = search.best({name: ALL[name] for name in program.factors}, images=False)
        assert winner == Combination.of({"amp_dtype": "bfloat16", "fused_optimizer": True})
        rival = Combination.of({"matmul_precision": "tf32", "fused_optimizer": True})
        assert rival in [one.combination for one in search.final(winner)]

    def test_the_best_of_each_level(self) -> None:
        arms = [
            arm(10.0), arm(12.0, fused_optimizer=True), arm(20.0, fused_optimizer=True, matmul_precision="tf32"),
            arm(19.0, fused_optimizer=True, amp_dtype="bfloat16"),
        ]  # fmt: skip
        levels = {level: found.values for level, found in by_level(arms)}
        assert levels["exact"] == {}
        assert levels["rounding"] == {"fused_optimizer": True}
        assert levels["tf32"] == levels["mixed"] == {"fused_optimizer": True, "matmul_precision": "tf32"}

    def test_where_nothing_can_be_tried_torchs_defaults_are_measured(self) -> None:
        search = Program({}).search()
        [found] = search.final(search.best({}, images=False))
        assert found.combination == DEFAULT
        assert found.samples

    def test_where_nothing_is_left_nothing_is_measured_again(self) -> None:
        program = Program({}, noise=0.001)
        search = program.search()
        winner = search.best(ALL, images=False)
        blocks = program.blocks
        assert [one.combination for one in search.final(winner)] == [DEFAULT]
        assert program.blocks == blocks


class TestChoice:
    def test_more_memory_must_be_earned(self) -> None:
        frugal, greedy = arm(10.0, fused_optimizer=True), arm(10.3, 2000, cudnn_benchmark=True)
        assert choice([frugal, greedy], 1000) is frugal

    def test_and_may_be(self) -> None:
        frugal, greedy = arm(10.0, fused_optimizer=True), arm(11.0, 2000, cudnn_benchmark=True)
        assert choice([frugal, greedy], 1000) is greedy

    def test_a_little_more_is_no_matter(self) -> None:
        frugal = arm(10.0)
        greedy = arm(10.3, round(1000 * MORE_MEMORY), cudnn_benchmark=True)
        assert choice([frugal, greedy], 1000) is greedy

    def test_a_larger_effect_on_results_must_be_worth_it(self) -> None:
        lower = arm(10.0, matmul_precision="tf32")
        assert choice([lower, arm(10.2, amp_dtype="bfloat16")], 1000) is lower
        larger = arm(10.5, amp_dtype="bfloat16")
        assert choice([lower, larger], 1000) is larger

    def test_and_certain_where_that_is_asked_for(self) -> None:
        lower, larger = arm(10.0, matmul_precision="tf32"), arm(10.5, amp_dtype="bfloat16")
        assert choice([lower, larger], 1000, certain=True) is larger
        larger.samples[:4] = [9.5] * 4
        assert choice([lower, larger], 1000) is larger
        assert choice([lower, larger], 1000, certain=True) is lower

    def test_without_a_gpu_there_is_no_memory_to_look_at(self) -> None:
        fast = arm(11.0, None, fused_optimizer=True)
        assert choice([arm(10.0, None), fast], None) is fast


def test_what_is_far_behind_is_dropped() -> None:
    slow = arm(5.0)
    assert behind([arm(10.0, fused_optimizer=True), slow, arm(9.5, compile=True)]) == [slow]


def test_what_was_faster_in_a_round_is_kept() -> None:
    disturbed = arm(5.0)
    disturbed.samples[3] = 11.0
    assert behind([arm(10.0, fused_optimizer=True), disturbed]) == []


def test_a_gain_has_an_interval() -> None:
    found = gain(arm(20.0, fused_optimizer=True), arm(10.0))
    assert found is not None
    assert (found.ratio, found.interval, found.verdict) == (2.0, (2.0, 2.0), "gain")
