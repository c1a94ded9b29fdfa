"""From what was measured to the program in a profile."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from recorded import facts_of
from trials.test_measuring import FOUND, HELLO

from gputune.live.models import ModelKey
from gputune.profile import Guard
from gputune.search.choice import Tried
from gputune.search.combination import DEFAULT, Combination
from gputune.trials.result import ranking, tuned
from gputune.trials.search_result import SearchResult

TF32 = {"matmul_precision": "tf32"}
BOTH = {**TF32, "fused_optimizer": True}
GUARD = Guard(verdict="off", steps=0)


def arm(rates: Sequence[float], peak: int | None = None, **values: Any) -> Tried:
    made = Tried(combination=Combination.of(values), stage="final")
    made.samples += rates
    made.peaks += [] if peak is None else [peak]
    return made


def measured(*arms: Tried, disturbed: str = "") -> SearchResult:
    return SearchResult(
        hello=HELLO, found=FOUND, arms=list(arms), tried=list(arms), left={}, failed={}, seconds=5.0,
        conditions={}, disturbed=disturbed,
    )  # fmt: skip


def result_of(found: SearchResult, device: str = "cuda:0") -> Any:
    return tuned(found, next(iter(ranking(found)), None), facts_of(), device, GUARD)


PLAIN = arm([10.0] * 12)


class TestRanking:
    def test_the_fastest_that_gains_comes_first(self) -> None:
        ranked = ranking(measured(PLAIN, arm([20.0] * 12, **TF32), arm([30.0] * 12, **BOTH)))
        assert [one.combination.values for one, _ in ranked] == [BOTH, TF32]

    def test_what_does_not_gain_is_none_of_them(self) -> None:
        assert ranking(measured(PLAIN, arm([10.1] * 12, **TF32))) == []

    def test_more_memory_must_be_earned(self) -> None:
        plain, frugal = arm([10.0] * 12, peak=100), arm([20.0] * 12, peak=100, **TF32)
        ranked = ranking(measured(plain, frugal, arm([20.5] * 12, peak=150, **BOTH)))
        assert ranked[0][0].combination.values == TF32


class TestTuned:
    def test_a_program_of_what_gains(self) -> None:
        found = result_of(measured(PLAIN, arm([20.0] * 12, **TF32), arm([30.0] * 12, **BOTH)))
        assert {name: choice.value for name, choice in found.program.settings.items()} == BOTH
        assert {choice.gain for choice in found.program.settings.values()} == {3.0}
        assert found.program.by_numerics == {"tf32": BOTH, "mixed": BOTH}
        assert len(found.program.measurements) == 3

    @pytest.mark.parametrize(("values", "dataset"), [({"dataloader_workers": 2}, "Images"), (TF32, None)])
    def test_the_dataset_is_kept_where_its_loader_gets_workers(
        self, values: dict[str, Any], dataset: str | None
    ) -> None:
        found = result_of(replace(measured(PLAIN, arm([20.0] * 12, **values)), dataset="Images"))
        assert found.program.dataset == dataset

    @pytest.mark.parametrize(("kinds", "kept"), [(64, True), (65, False)])
    def test_layers_are_kept_where_all_models_together_have_few_kinds(self, kinds: int, kept: bool) -> None:
        layers = {f"{number:04x}": 1 for number in range(kinds)}
        models = tuple(ModelKey(class_name=name, digest="0" * 16, layers=layers) for name in "AB")
        found = result_of(replace(measured(PLAIN), found=replace(FOUND, models=models)))
        assert [one.layers for one in found.program.models] == [layers if kept else {}] * 2

    def test_what_was_told_beside_others_is_provisional_unless_a_gpu_works_twice_as_fast(self) -> None:
        others = "others used up to 1.5 of 2 CPUs"
        found = result_of(measured(PLAIN, arm([15.0] * 12, **TF32), disturbed=others))
        choice = found.program.settings["matmul_precision"]
        assert (choice.value, choice.provisional, choice.interval, found.disturbed) == (
            "tf32",
            True,
            (1.5, 1.5),
            others,
        )
        assert choice.reason.startswith("probably ")
        assert choice.reason.endswith(others)
        for device, disturbed in {"cuda:0": "", "cpu": others}.items():
            far = result_of(measured(PLAIN, arm([30.0] * 12, **TF32), disturbed=others), device)
            assert far.program.settings["matmul_precision"].provisional == bool(disturbed)
            assert far.disturbed == disturbed

    def test_nothing_gains(self) -> None:
        found = result_of(measured(PLAIN, arm([10.1] * 12, **TF32)))
        assert (found.combination, found.gain) == (DEFAULT, None)
        assert found.program.settings == found.program.by_numerics == {}

    def test_each_row_says_how_long_the_gpu_worked_for_a_step(self) -> None:
        traced = arm([20.0] * 12, **TF32)
        traced.device_seconds = 0.0123
        rows = result_of(measured(PLAIN, traced)).program.measurements
        assert [row.conditions.get("device_ms") for row in rows] == [None, 12.3]

    def test_memory_is_said_where_it_is_more(self) -> None:
        found = result_of(measured(arm([10.0] * 12, peak=100), arm([20.0] * 12, peak=150, **TF32)))
        assert found.more_memory == 1.5
