"""The search for the best combination, with programs whose step times are made up."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gputune.knobs import Value, channels_last
from gputune.knobs.dataloader_workers import WORKERS
from gputune.measurement import FEWEST_PAIRS, LOOKS, MORE_LOOKS
from gputune.search import combination
from gputune.search.budget import STEPS
from gputune.search.choice import Block, Tried, gaining
from gputune.search.combination import DEFAULT, Combination, traits
from gputune.search.search import FIRST_LOOK, LOADING, Search, needed_steps, options, precisions, to_compile

ALL: Mapping[str, Any] = {
    "matmul_precision": "tf32", "amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True,
    "compile": True,
}  # fmt: skip
NO_IMAGES = {name: value for name, value in ALL.items() if name != "channels_last"}
Factors = Mapping[str, float]


class Program:
    """Each setting makes a step so many times as fast; with noise, and with a memory of 1000 bytes."""

    def __init__(self, factors: Factors, memory: Factors | None = None, noise: float = 0.01) -> None:
        self.factors, self.memory, self.noise = factors, memory or {}, noise
        self.blocks = 0
        self.compiled: set[Combination] = set()
        self.random = random.Random(1)

    def measure(self, combination: Combination) -> Block:
        self.blocks += 1
        rate, peak = 10.0 * self.random.gauss(1, self.noise), 1000.0
        for name, _ in combination.items:
            rate *= self.factors.get(name, 1.0)
            peak *= self.memory.get(name, 1.0)
        if "compile" in combination.values:
            self.compiled.add(combination)
        return Block(rate=rate, peak_bytes=round(peak))

    def search(self, **more: Any) -> Search:
        return Search(measure=self.measure, used=lambda: self.blocks / 200, **more)


class Limited(Program):
    """An MLP on an H100: with the fused optimizer TF32 is faster than bfloat16, whose autocast costs the host time."""

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
    """A GPT-2 beside a slow host, which needs 40 ms for a step, and compiled 12. Compiled it makes a mask, which
    FlashAttention does not take: where that alone is allowed, attention then takes longer.
    """

    def __init__(self, noise: float, *, traced: bool = True, seed: int = 1) -> None:
        super().__init__({}, noise=noise)
        self.random.seed(seed)
        self.traced = traced

    def device(self, combination: Combination) -> float:
        has = combination.values
        works = 15.0 if "amp_dtype" in has else 40.0 if "matmul_precision" in has else 120.0
        return works + 5 * ({"sdpa_backend", "compile"} <= set(has)) + 2 * ("fused_optimizer" not in has)

    def measure(self, combination: Combination) -> Block:
        works, block = self.device(combination), super().measure(combination)
        host = 12 if "compile" in combination.values else 40
        traced = works * self.random.gauss(1, 0.002) if self.traced else None
        return Block(rate=block.rate / max(works, host), peak_bytes=block.peak_bytes, device_seconds=traced)


class AsMuchWork(Program):
    """The GPU works as long with every combination but those of `lighter`: what gains spares the host."""

    def __init__(self, factors: Factors, *, lighter: Factors | None = None, seed: int = 1, **more: Any) -> None:
        super().__init__(factors, **more)
        self.random.seed(seed)
        self.lighter = lighter or {}

    def measure(self, combination: Combination) -> Block:
        works = math.prod(self.lighter.get(name, 1.0) for name in combination.values)
        return replace(super().measure(combination), device_seconds=works)


class Disturbed(AsMuchWork):
    """The host disturbs the first block of each combination with mixed precision, which else halves a step's time."""

    def __init__(self) -> None:
        super().__init__({"amp_dtype": 2.0}, lighter={"amp_dtype": 0.5}, noise=0.001)
        self._calm: set[Combination] = set()

    def measure(self, combination: Combination) -> Block:
        block = super().measure(combination)
        if "amp_dtype" in combination.values and combination not in self._calm:
            self._calm.add(combination)
            return replace(block, rate=block.rate / 3)
        return block


def best(program: Program, candidates: Mapping[str, Any] = ALL, **more: Any) -> Combination:
    return program.search(**more).best(candidates)


class TestBest:
    def test_what_gains_is_combined(self) -> None:
        found = best(Program({"amp_dtype": 2.0, "channels_last": 1.3, "fused_optimizer": 1.1, "compile": 1.2}))
        assert found.values == {
            "amp_dtype": "bfloat16", "channels_last": True, "fused_optimizer": True, "compile": True,
            "matmul_precision": "tf32",
        }  # fmt: skip

    def test_mixed_precision_is_not_compiled_with_tf32_where_the_two_failed_together(self) -> None:
        bad = Combination.of({"amp_dtype": "bfloat16", "matmul_precision": "tf32"})
        found = best(Program({"amp_dtype": 2.0, "compile": 1.2}), NO_IMAGES, is_left_out=bad.__eq__)
        assert found.values == {"amp_dtype": "bfloat16", "compile": True}

    def test_what_failed_compiled_is_not_compiled_in_another_way(self) -> None:
        program = Program({"amp_dtype": 2.0, "compile": 1.2})
        best(program, NO_IMAGES)
        [failed] = program.compiled
        again = Program({"amp_dtype": 2.0, "compile": 1.2})
        assert "compile" not in best(again, NO_IMAGES, is_left_out=failed.__eq__).values
        assert not again.compiled

    def test_threads_are_one_of_the_options(self) -> None:
        candidates = {"fused_optimizer": True, "omp_threads": 1}
        found = best(Program({"omp_threads": 1.5, "fused_optimizer": 1.2}), candidates)
        assert str(found) == "fused_optimizer + 1 thread"

    @pytest.mark.parametrize("program", [Program(dict.fromkeys(ALL, 0.9)), Program({}, noise=0.001)])
    def test_what_does_not_gain_is_left_out(self, program: Program) -> None:
        assert best(program) == DEFAULT

    @pytest.mark.parametrize("seed", range(5))
    def test_the_better_precision_is_found_whatever_the_noise(self, seed: int) -> None:
        program = Program({"matmul_precision": 2.2, "amp_dtype": 1.8, "fused_optimizer": 1.4}, noise=0.03)
        program.random.seed(seed)
        found = best(program, NO_IMAGES)
        assert found.values["matmul_precision"] == "tf32"
        assert found.values["fused_optimizer"] is True

    @pytest.mark.parametrize("seed", range(5))
    def test_a_precision_is_looked_at_again_once_the_limit_of_all_is_gone(self, seed: int) -> None:
        program = Limited(noise=0.02)
        program.random.seed(seed)
        assert best(program, NO_IMAGES).values == {"matmul_precision": "tf32", "fused_optimizer": True}

    def test_what_one_round_put_behind_is_looked_at_again_where_it_leaves_the_gpu_the_least_to_do(self) -> None:
        candidates = {name: ALL[name] for name in ("amp_dtype", "matmul_precision")}
        program = Disturbed()
        search = Search(measure=program.measure, used=lambda: program.blocks / 25)
        assert search.best(candidates).values == {"amp_dtype": "bfloat16"}
        assert [len(arm.samples) for arm in search.tried if arm.stage == "precision"] == [1] * 4

    def test_not_so_what_enough_rounds_did(self) -> None:
        search = AsMuchWork({"amp_dtype": 0.5}, lighter={"amp_dtype": 0.5}).search()
        search.best({name: ALL[name] for name in ("amp_dtype", "matmul_precision")})
        assert {arm.stage for arm in search.tried} == {"precision"}

    def test_compiling_must_be_worth_its_first_step(self) -> None:
        assert best(Program({"compile": 1.02}, noise=0.001)) == DEFAULT
        assert "compile" in best(Program({"compile": 1.04}, noise=0.001)).values

    @pytest.mark.parametrize("traced", [False, True])
    def test_where_the_host_limits_all_precisions_the_one_with_the_least_work_is_compiled(self, traced: bool) -> None:
        found = best(HostLimited(noise=0.001, traced=traced), NO_IMAGES)
        assert {"amp_dtype", "compile"} <= set(found.values)

    @pytest.mark.parametrize("seed", range(10))
    def test_what_gives_the_gpu_more_to_do_is_not_taken_for_luck_beside_a_noisy_host(self, seed: int) -> None:
        program = HostLimited(noise=0.05, seed=seed)
        found = best(program, NO_IMAGES | {"sdpa_backend": "flash"})
        assert "compile" in found.values
        assert program.device(found) == program.device(
            Combination.of({"amp_dtype": "bfloat16", "fused_optimizer": True})
        )

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("setting", ["fused_optimizer", "inference_mode", "compile"])
    def test_what_spares_the_host_gains_though_the_gpu_has_as_much_to_do(self, setting: str, seed: int) -> None:
        candidates = {setting: True, "matmul_precision": "tf32"}
        assert best(AsMuchWork({setting: 1.15}, noise=0.06, seed=seed), candidates).values == {setting: True}

    def test_more_memory_is_not_compiled_for_less_work_alone(self) -> None:
        candidates = {"fused_optimizer": True, "cudnn_benchmark": True, "compile": True}
        program = AsMuchWork({"compile": 1.5}, lighter={"cudnn_benchmark": 0.9}, memory={"cudnn_benchmark": 2.0})
        assert best(program, candidates).values == {"compile": True}
        program.memory = {}
        assert {"compile", "cudnn_benchmark"} <= set(best(program, candidates).values)

    @pytest.mark.parametrize("seed", range(5))
    def test_compiling_is_compared_until_decided(self, seed: int) -> None:
        program = Program({"amp_dtype": 2.0, "compile": 1.08}, noise=0.04)
        program.random.seed(seed)
        search = program.search()
        search.best({name: ALL[name] for name in program.factors})
        rounds = {len(one.samples) for one in search.tried if one.stage == "compile"}
        assert rounds <= {FIRST_LOOK, *LOOKS}

    def test_only_the_best_is_compiled(self) -> None:
        program = Program({"amp_dtype": 2.0, "compile": 1.5})
        best(program)
        assert len(program.compiled) == 1

    def test_what_failed_before_is_left_out(self) -> None:
        bad = Combination.of({"amp_dtype": "bfloat16", "matmul_precision": "tf32"})
        search = Program({"amp_dtype": 2.0, "matmul_precision": 1.5}).search(is_left_out=bad.__eq__)
        assert search.best(NO_IMAGES) == Combination.of({"amp_dtype": "bfloat16"})
        assert bad not in [one.combination for one in search.tried]

    def test_it_keeps_to_its_share(self) -> None:
        program = Program(dict.fromkeys(ALL, 1.1), noise=0.05)
        search = program.search()
        search.final(search.best(ALL))
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
        search = program.search(is_left_out=lambda one: {"amp_dtype", "matmul_precision"} <= set(one.values))
        winner = search.best({name: ALL[name] for name in program.factors})
        assert winner == Combination.of({"amp_dtype": "bfloat16", "fused_optimizer": True})
        rival = Combination.of({"matmul_precision": "tf32", "fused_optimizer": True})
        assert rival in [one.combination for one in search.final(winner)]

    @pytest.mark.parametrize("seed", range(5))
    def test_whatever_is_compiled_the_lower_effect_stays_a_rival(self, seed: int) -> None:
        search = HostLimited(noise=0.05, seed=seed).search()
        arms = search.final(search.best(NO_IMAGES | {"sdpa_backend": "flash"}))
        assert "tf32" in {one.combination.level for one in arms}

    def test_it_goes_on_until_noise_hides_no_gain(self) -> None:
        program, gains = Program({"fused_optimizer": 1.12}, noise=0.15), 0
        for _ in range(20):
            search = Search(measure=program.measure, used=lambda: 0.0)
            default, fused = search.final(Combination.of({"fused_optimizer": True}))
            found = fused.against(default)
            gains += found is not None and found.verdict == "gain"
        assert gains >= 18, "of 32 rounds each, 7 find it"

    def test_where_nothing_can_be_tried_torchs_defaults_are_measured(self) -> None:
        search = Program({}).search()
        [found] = search.final(search.best({}))
        assert found.combination == DEFAULT
        assert found.samples

    def test_where_nothing_is_left_nothing_is_measured_again(self) -> None:
        program = Program({}, noise=0.001)
        search = program.search()
        winner = search.best(NO_IMAGES)
        blocks = program.blocks
        assert [one.combination for one in search.final(winner)] == [DEFAULT]
        assert program.blocks == blocks


EVERY = {**ALL, "cudnn_benchmark": True, "sdpa_backend": "flash"}
TF32: dict[str, Value] = {"matmul_precision": "tf32"}
HALF: dict[str, Value] = {"amp_dtype": "bfloat16"}
PRECISIONS = [
    "channels_last", "tf32", "channels_last + tf32", "bfloat16", "bfloat16 + channels_last", "bfloat16 + tf32",
    "bfloat16 + channels_last + tf32",
]  # fmt: skip


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        (precisions(DEFAULT, EVERY), PRECISIONS),
        (precisions(DEFAULT, TF32 | HALF), ["tf32", "bfloat16", "bfloat16 + tf32"]),
        (precisions(Combination.of({WORKERS: 4}), TF32), ["4 workers + tf32"]),
        (options(DEFAULT, EVERY), ["fused_optimizer", "cudnn_benchmark + fused_optimizer", "fused_optimizer + flash"]),
        (options(DEFAULT, {"cudnn_benchmark": True, "omp_threads": 2}), ["cudnn_benchmark", "2 threads"]),
        (to_compile(Combination.of(HALF), HALF), ["bfloat16"]),
    ],
    ids=[
        "precisions in both formats", "or in one", "on what was found before", "options beside the fused",
        "options by themselves", "compiled without TF32",
    ],
)  # fmt: skip
def test_what_each_stage_compares(compared: list[Combination], expected: list[str]) -> None:
    assert [str(one) for one in compared] == expected


@pytest.mark.parametrize(("light", "first"), [(HALF, HALF | TF32), (HALF | TF32, HALF | TF32), (TF32, TF32), ({}, {})])
def test_mixed_precision_is_compiled_with_tf32(light: dict[str, Value], first: dict[str, Value]) -> None:
    """Where the two are known to fail together, mixed precision is compiled alone, which is the last."""
    found = [one.values for one in to_compile(Combination.of(light), EVERY)]
    assert found[0] == first
    assert found[-1] == light


def test_what_comes_after_a_setting_is_tried_on_top_of_it_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels_last, "AFTER", ("amp_dtype",), raising=False)
    monkeypatch.setattr(combination, "traits", traits.__wrapped__)
    both = "bfloat16 + channels_last"
    assert [str(one) for one in precisions(DEFAULT, HALF | {"channels_last": True})] == ["bfloat16", both]
    assert [str(one) for one in precisions(DEFAULT, {"channels_last": True})] == ["channels_last"]


class Beside(Program):
    """Others disturb it for `busy` rounds of ten, in which each block runs at a fraction of its speed, by chance."""

    def __init__(self, factors: Factors, busy: int, *, seed: int = 1, noise: float = 0.02) -> None:
        super().__init__(factors, noise=noise)
        self.random.seed(seed)
        self.busy, self.rounds = busy, 0

    def measure(self, combination: Combination) -> Block:
        block = super().measure(combination)
        return replace(block, rate=block.rate * self.random.uniform(0.1, 1.0)) if self.is_busy else block

    @property
    def is_busy(self) -> bool:
        return self.rounds % 10 < self.busy

    def was_calm(self) -> bool:
        was_busy, self.rounds = self.is_busy, self.rounds + 1
        return not was_busy

    def final(self, winner: Combination) -> tuple[Search, list[Tried]]:
        search = Search(measure=self.measure, used=lambda: self.blocks / 150, was_calm=self.was_calm)
        return search, search.final(winner)


class TestBesideOthers:
    one = Combination.of({"fused_optimizer": True})

    @pytest.mark.parametrize("seed", range(10))
    def test_calm_rounds_alone_tell(self, seed: int) -> None:
        search, (default, fused) = Beside({"fused_optimizer": 1.2}, busy=7, seed=seed).final(self.one)
        found = fused.against(default)
        assert found is not None
        assert found.verdict == "gain"
        assert found.ratio == pytest.approx(1.2, abs=0.05)
        assert not search.is_disturbed
        assert len(fused.samples) < len(fused.every)

    @pytest.mark.parametrize("seed", range(10))
    def test_what_calm_rounds_leave_open_is_told_by_all_and_so_not_certain(self, seed: int) -> None:
        search, (default, fused) = Beside({"fused_optimizer": 3.0}, busy=10, seed=seed).final(self.one)
        assert search.is_disturbed
        assert fused.samples == fused.every
        assert fused.against(default) is not None

    def test_of_all_rounds_as_many_count_as_a_comparison_takes(self) -> None:
        program = Beside({"fused_optimizer": 1.0}, busy=10, seed=1)
        search = Search(measure=program.measure, used=lambda: program.blocks / 4000, was_calm=program.was_calm)
        _, fused = search.final(self.one)
        assert len(fused.samples) == MORE_LOOKS[-1] < len(fused.every)

    def test_that_nothing_gains_is_certain_by_calm_rounds_too(self) -> None:
        search, (default, fused) = Beside({}, busy=5, noise=0.002).final(self.one)
        found = fused.against(default)
        assert found is not None
        assert found.verdict == "no gain"
        assert not search.is_disturbed

    def test_gains_are_found_about_as_often_as_alone(self) -> None:
        """Of noise in disturbed rounds nothing is left, and nothing is made up where nothing gains."""
        found = [Beside({"fused_optimizer": 1.15}, busy=6, seed=seed, noise=0.05).final(self.one) for seed in range(50)]
        gains = [fused.against(default) for _, (default, fused) in found]
        assert sum(one is not None and one.verdict == "gain" for one in gains) >= 40
        none = [Beside({}, busy=6, seed=seed, noise=0.05).final(self.one) for seed in range(50)]
        made_up = [fused.against(default) for search, (default, fused) in none if not search.is_disturbed]
        assert sum(one is not None and one.verdict == "gain" for one in made_up) <= 1

    @pytest.mark.parametrize("seed", range(5))
    def test_stages_go_by_calm_rounds_too(self, seed: int) -> None:
        program = Beside({"amp_dtype": 1.5, "fused_optimizer": 1.2}, busy=5, seed=seed)
        search = Search(measure=program.measure, used=lambda: program.blocks / 400, was_calm=program.was_calm)
        candidates = {name: ALL[name] for name in ("amp_dtype", "fused_optimizer")}
        assert search.best(candidates).values == candidates

    @pytest.mark.parametrize("seed", range(10))
    @pytest.mark.parametrize("factor", [1.2, 0.8])
    def test_what_disturbed_rounds_put_behind_is_not_certainly_slower(self, factor: float, seed: int) -> None:
        program = Beside({"fused_optimizer": factor}, busy=10, seed=seed)
        search = Search(measure=program.measure, used=lambda: program.blocks / 400, was_calm=program.was_calm)
        search.final(search.best({"fused_optimizer": True}))
        assert search.is_disturbed

    def test_what_a_stage_leaves_open_is_compared_to_the_end(self) -> None:
        """Too few rounds put a gain behind torch's defaults."""
        rates = iter([*[10.0, 9.0, 9.0, 10.0] * 3, 10.0, 9.0, 11.0, 10.0])
        better = Program({"fused_optimizer": 1.1})

        def measure(combination: Combination) -> Block:
            rate = next(rates, None)
            return better.measure(combination) if rate is None else Block(rate=rate)

        search = Search(measure=measure, used=lambda: better.blocks / 400)
        assert search.best({"fused_optimizer": True}) == DEFAULT
        default, fused = search.final(DEFAULT)
        assert [arm.combination for arm, _ in gaining([default, fused])] == [self.one]

    def test_what_no_stage_took_is_compared_in_enough_rounds_to_tell(self) -> None:
        """Of long steps a fifth of the search has fewer."""
        program = Program({}, noise=0.02)
        search = Search(measure=program.measure, used=lambda: program.blocks / 60)
        found = search.final(search.best({"fused_optimizer": True}))
        assert [len(arm.samples) for arm in found] == [FEWEST_PAIRS] * 2

    def test_numbers_of_workers_that_were_timed_once_are_compared_to_the_end(self) -> None:
        program = Program({WORKERS: 1.3})
        search = program.search()
        for values in ({}, {WORKERS: 2}):
            one = Tried(combination=Combination.of(values), stage=LOADING)
            one.samples.append(program.measure(one.combination).rate)
            search.tried.append(one)
        default, workers = search.final(search.best({}))
        assert [arm.combination.workers for arm, _ in gaining([default, workers])] == [2]

    def test_what_a_stage_had_too_few_rounds_for_is_compared_to_the_end(self) -> None:
        program = Program({"fused_optimizer": 1.01}, noise=0.001)
        search = Search(measure=program.measure, used=lambda: program.blocks / 20)
        assert len(search.final(search.best({"fused_optimizer": True}))) == 2

    def test_what_the_first_look_drops_is_told(self) -> None:
        program = Program({"amp_dtype": 0.5})
        search = program.search()
        assert [arm.combination for arm in search.final(search.best({"amp_dtype": "bfloat16"}))] == [DEFAULT]


class TestNeededSteps:
    def test_more_settings_need_more(self) -> None:
        needed = [needed_steps({name: ALL[name] for name in list(ALL)[-count:]}) for count in range(1, len(ALL) + 1)]
        assert needed == sorted(needed)
        assert 50 <= needed[0] < needed[-1] <= STEPS
