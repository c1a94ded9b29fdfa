"""The combination that measured training steps recommend, and what the accuracy guard refuses."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import final_loss, final_losses, precisions, row, steps, steps_with

from gputune.advice import _training, _training_rows
from gputune.advice._evidence import beats
from gputune.advice._training import best, choice_everywhere, first_best, option
from gputune.advice._training_rows import families, refusals, with_precision
from gputune.search.choice import plainness
from gputune.search.combination import Combination

PLAIN = steps_with()
TF32, BFLOAT16, FLOAT16 = (steps_with(name) for name in ("tf32", "bfloat16", "float16"))
FUSED, COMPILED = steps_with(fused_optimizer=True), steps_with(compile=True)
BOTH = FUSED.plus("compile", True)

combinations = st.builds(
    steps_with,
    precision=st.sampled_from(list(_training_rows.PRECISIONS)),
    **{flag: st.booleans() for flag in _training_rows.FLAGS},
)


def chosen(rates: dict[Combination, float], stage: str = "precision") -> Combination | None:
    return _training.best_of(_training_rows.steps(steps("mlp", rates, stage), "mlp", stage))


class TestTheRule:
    LAST = PLAIN.plus("channels_last", True)
    MIXED_LAST = BFLOAT16.plus("channels_last", True)

    @pytest.mark.parametrize(
        ("rates", "best"),
        [
            ({PLAIN: 100.0, TF32: 300.0, BFLOAT16: 400.0}, BFLOAT16),
            ({PLAIN: 100.0, TF32: 400.0, BFLOAT16: 300.0}, TF32),
            *(({PLAIN: 100.0, TF32: rate, BFLOAT16: rate}, PLAIN) for rate in (100.0, 102.9, 90.0)),
            ({PLAIN: 100.0, BFLOAT16: 200.0, FLOAT16: 205.0}, BFLOAT16),
            ({PLAIN: 100.0, BFLOAT16: 200.0, FLOAT16: 210.0}, FLOAT16),
            # mixed precision must gain 10 % over FP32, and hides no other gain if it does not
            ({PLAIN: 100.0, BFLOAT16: 109.0}, PLAIN),
            ({PLAIN: 100.0, BFLOAT16: 111.0}, BFLOAT16),
            ({PLAIN: 100.0, TF32: 108.0, BFLOAT16: 109.0}, TF32),
            ({PLAIN: 100.0, LAST: 108.0, BFLOAT16: 101.0, MIXED_LAST: 109.0}, LAST),
            # options that pay only together are taken together; what a second one adds must pay, too
            ({PLAIN: 100.0, FUSED: 101.0, COMPILED: 101.0, BOTH: 110.0}, BOTH),
            ({PLAIN: 100.0, FUSED: 105.0, COMPILED: 100.0, BOTH: 107.0}, FUSED),
            # a fused optimizer is a word; compiling costs time at every start
            ({PLAIN: 100.0, FUSED: 110.0, COMPILED: 110.0}, FUSED),
            ({PLAIN: 100.0, FUSED: 110.0, COMPILED: 120.0}, COMPILED),
        ],
    )
    def test_the_plainest_that_none_gains_over(self, rates: dict[Combination, float], best: Combination) -> None:
        assert chosen(rates) == best

    @pytest.mark.parametrize("turned", [False, True])
    def test_of_as_many_steps_away_neither_noise_nor_the_order_of_rows_decides(self, turned: bool) -> None:
        def of(rates: dict[Combination, float], stage: str) -> Combination | None:
            return chosen(dict(reversed(rates.items())) if turned else rates, stage)

        half = {self.MIXED_LAST: 400.0, FLOAT16: 402.0, FLOAT16.plus("channels_last", True): 400.0}
        assert of({PLAIN: 100.0, TF32: 200.0, BFLOAT16: 300.0, **half}, "precision") == self.MIXED_LAST
        search = TF32.plus("cudnn_benchmark", True)
        either = {search: 150.0, TF32.plus("fused_optimizer", True): 151.0, search.plus("fused_optimizer", True): 150.0}
        assert of({TF32: 100.0, **either}, "options") == search

    def test_what_scatters_too_much_to_tell_changes_nothing(self) -> None:
        plain, tf32 = steps("mlp", {PLAIN: 100.0, TF32: 110.0})
        wild = replace(tf32, samples=tuple(80.0 if number % 2 else 140.0 for number in range(12)))
        assert first_best([plain, wild], "mlp") == PLAIN

    def test_nothing_measured_is_nothing_chosen(self) -> None:
        assert chosen({}) is None
        assert best([], "mlp") is None

    @pytest.mark.slow
    @given(rates=st.dictionaries(combinations, st.floats(50, 200), min_size=1, max_size=10))
    def test_it_is_within_3_percent_of_the_best_and_never_slower_than_the_default(self, rates: Any) -> None:
        rows = _training_rows.steps(steps("mlp", rates), "mlp", "precision")
        found = _training.best_of(rows)
        assert found is not None
        default = min(rows, key=plainness)
        exact = [one for one in rows if one.level != "mixed"]
        alike = exact if found in exact else [one for one in rows if one not in exact]
        assert max(rows[one].median for one in alike) <= 1.031 * rows[found].median
        among_all = (
            1.101 * 1.031 if found in exact else 1.031
        )  # mixed precision must be worth 10 % more than the simplest exact one
        assert max(row.median for row in rows.values()) <= among_all * rows[found].median
        assert rows[found].median >= rows[default].median

    @pytest.mark.slow
    @given(
        samples=st.dictionaries(
            combinations, st.lists(st.floats(50, 200), min_size=12, max_size=12), min_size=1, max_size=6
        )
    )
    def test_however_samples_scatter_it_is_the_default_or_gains_over_it(self, samples: Any) -> None:
        made = steps("mlp", dict.fromkeys(samples, 1.0))
        rows = {one: replace(made[number], samples=tuple(samples[one])) for number, one in enumerate(samples)}
        found, least = _training.best_of(rows), min(map(plainness, rows))
        assert found is not None
        assert plainness(found) == least or any(
            beats(rows[found], row) for one, row in rows.items() if plainness(one) == least
        )

    def test_what_is_not_certainly_slower_than_the_fastest_is_taken_for_its_plainness(self) -> None:
        plain, tf32, fast = steps("mlp", {PLAIN: 100.0, TF32: 300.0, BFLOAT16: 310.0})
        wild = replace(fast, samples=tuple(380.0 if number % 3 else 250.0 for number in range(12)))
        assert wild.median > tf32.median
        assert first_best([plain, tf32, wild], "mlp") == TF32
        assert first_best([plain, tf32, replace(fast, samples=(380.0,) * 12)], "mlp") == BFLOAT16

    @given(one=combinations)
    def test_a_row_holds_its_combination(self, one: Combination) -> None:
        assert plainness(PLAIN) <= plainness(one)
        [row] = steps("mlp", {one: 1.0})
        assert list(_training_rows.steps([row], "mlp", "precision")) == [one]

    @pytest.mark.parametrize(
        ("params", "read"),
        [
            ({"precision": "float32"}, PLAIN),
            ({"precision": "tf32", "fused": True, "compiled": True}, TF32.with_all(BOTH.values)),
            ({"precision": "bfloat16", "channels_last": True}, MIXED_LAST),
            ({"precision": "int3"}, None),
            ({}, PLAIN),
            ({"matmul_precision": "tf32", "amp_dtype": "float16", "compile": False}, FLOAT16),
            ({"amp_dtype": "bfloat16"}, BFLOAT16),
            ({"matmul_precision": "tf32", "amp_dtype": "float8"}, None),
        ],
    )
    def test_rows_are_read_by_the_settings_names_and_by_older_ones(self, params: Any, read: Any) -> None:
        assert _training_rows.combination_of({"network": "mlp", **params}) == read


class TestTheGuard:
    EXACT = (1.0, 1.1, 0.9)
    """Their standard deviation is 0.1."""

    @pytest.mark.parametrize("loss", [1.0, 1.19, 0.81])
    def test_what_differs_as_seeds_do_is_allowed(self, loss: float) -> None:
        assert refusals(final_losses("mlp", *self.EXACT, bfloat16=loss), "mlp") == {}

    @pytest.mark.parametrize("loss", [1.21, 0.79])
    def test_what_differs_by_more_than_two_standard_deviations_is_refused(self, loss: float) -> None:
        assert refusals(final_losses("mlp", *self.EXACT, tf32=1.0, bfloat16=loss), "mlp") == {
            "bfloat16": f"its final loss was {loss} instead of FP32's 1, whose seeds scatter by 0.1"
        }

    def test_steps_that_the_scaler_skipped_beyond_finding_its_scale(self) -> None:
        found = {
            skipped: refusals(
                [*final_losses("mlp", *self.EXACT), final_loss("mlp", "float16", 1.0, skipped=skipped)], "mlp"
            )
            for skipped in (0, 2, 3)
        }
        assert found == {0: {}, 2: {}, 3: {"float16": "its GradScaler skipped 3 of 60 steps"}}

    @pytest.mark.parametrize("exact", [(1.9, 1.95), EXACT], ids=["the loss fell too little", "learned"])
    def test_what_broke_down_is_refused_also_where_final_losses_cannot_be_compared(self, exact) -> None:
        too_little = final_losses("mlp", *exact)
        diverged = final_loss("mlp", "float16", 0.0, diverged=True)
        assert refusals([*too_little, diverged], "mlp") == {"float16": "its loss became infinite or no number"}
        skipping = final_loss("mlp", "float16", 1.9, skipped=60)
        assert "skipped 60" in refusals([*too_little, skipping], "mlp")["float16"]

    @pytest.mark.parametrize(
        "exact", [(1.7, 1.71, 1.69), (1.0,), ()], ids=["the loss fell too little", "one seed", "not measured"]
    )
    def test_without_a_measure_of_its_own_nothing_is_refused(self, exact: tuple[float, ...]) -> None:
        rows = final_losses("mlp", *exact, bfloat16=9.0)
        assert refusals(rows, "mlp") == {}

    @pytest.mark.parametrize("seed", [0, 2])
    def test_nor_where_fp32_itself_diverged(self, seed: int) -> None:
        rows = final_losses("mlp", *self.EXACT, bfloat16=9.0)
        rows[seed] = final_loss("mlp", "float32", 0.0, seed, diverged=True)
        assert "fell too little" in _training_rows.guard_words(rows, "mlp")
        assert refusals(rows, "mlp") == {}

    def test_each_network_is_guarded_by_itself(self) -> None:
        rows = final_losses("mlp", *self.EXACT, bfloat16=1.0) + final_losses("transformer", *self.EXACT, bfloat16=1.5)
        assert list(refusals(rows, "mlp")) == []
        assert list(refusals(rows, "transformer")) == ["bfloat16"]
        assert _training_rows.refused_anywhere(rows, "bfloat16") == (
            "transformer: its final loss was 1.5 instead of FP32's 1, whose seeds scatter by 0.1"
        )
        assert _training_rows.refused_anywhere(rows, "float16") is None

    def test_a_refused_precision_is_no_candidate_however_fast(self) -> None:
        rows = precisions("mlp", float32=100.0, tf32=200.0, bfloat16=400.0)
        assert first_best(rows, "mlp") == BFLOAT16
        assert first_best(rows + final_losses("mlp", *self.EXACT, bfloat16=1.5), "mlp") == TF32

    def test_its_words(self) -> None:
        learned, flat = final_losses("mlp", *self.EXACT), final_losses("mlp", 1.7, 1.7)
        assert (
            _training_rows.guard_words(learned, "mlp")
            == "its final loss differs from FP32's by no more than FP32's seeds do"
        )
        assert _training_rows.guard_words(flat, "mlp") == "FP32's own loss fell too little to compare final losses"
        begun = final_losses("mlp", 1.0)
        assert _training_rows.guard_words(begun, "mlp") == _training_rows.guard_words([], "mlp")
        assert _training_rows.guard_words([], "mlp") == "final losses not compared in this run's budget"


class TestOptions:
    def test_the_second_group_decides_where_it_was_measured(self) -> None:
        rows = precisions("mlp", float32=100.0, tf32=200.0)
        assert best(rows, "mlp") == TF32
        fused = TF32.plus("fused_optimizer", True)
        assert best(rows + steps("mlp", {TF32: 200.0, fused: 220.0}, "options"), "mlp") == fused

    @pytest.mark.parametrize(
        ("rates", "on", "ratio"),
        [
            ({PLAIN: 100.0, FUSED: 101.0, COMPILED: 150.0, BOTH: 165.0}, True, 1.1),
            ({PLAIN: 100.0, FUSED: 90.0}, False, 0.9),
        ],
        ids=["beside the other options that were chosen", "one that does not pay"],
    )
    def test_a_flag_is_told_with_its_gain(self, rates: dict[Combination, float], on: bool, ratio: float) -> None:
        chosen, gain = option(steps("mlp", rates, "options"), "mlp", "fused_optimizer") or (None, None)
        assert chosen is on
        assert gain is not None
        assert gain.ratio == pytest.approx(ratio)

    def test_the_memory_format_belongs_to_the_first_group_and_skips_what_was_refused(self) -> None:
        last = PLAIN.plus("channels_last", True)
        fast, faster = (with_precision(one, "bfloat16") for one in (PLAIN, last))
        rows = steps("convnet", {PLAIN: 100.0, last: 90.0, fast: 200.0, faster: 300.0})
        assert option(rows, "convnet", "channels_last") == (True, rows[3].against(rows[2]))
        refused = final_losses("convnet", 1.0, 1.1, 0.9, bfloat16=1.5)
        assert option(rows + refused, "convnet", "channels_last") == (False, rows[1].against(rows[0]))

    def test_of_a_flag_that_was_not_measured_there_is_nothing_to_tell(self) -> None:
        rows = precisions("mlp", float32=100.0) + steps("mlp", {PLAIN: 100.0, FUSED: 120.0}, "options")
        assert option(rows, "mlp", "compile") is None
        assert option(rows, "mlp", "channels_last") is None
        assert option(rows, "transformer", "fused_optimizer") is None

    def test_over_all_networks_a_flag_is_taken_alone(self) -> None:
        rows = [
            *precisions("mlp", float32=100.0), *steps("mlp", {PLAIN: 100.0, FUSED: 90.0, BOTH: 500.0}, "options"),
            *precisions("recurrent", tf32=7.0),
            *steps("recurrent", {TF32: 7.0, TF32.plus("fused_optimizer", True): 14.0}, "options"),
            *precisions("convnet", float32=50.0),
        ]  # fmt: skip
        choice, slower = choice_everywhere(rows, "fused_optimizer", "steps of {}")
        assert choice.reason.startswith("steps of mlp, recurrent ran 1.34 times")
        assert (choice.gain, slower) == (pytest.approx((0.9 * 2) ** 0.5, rel=0.001), ["mlp"])
        not_measured, _ = choice_everywhere(rows, "compile", "steps of {}")
        assert (not_measured.value, not_measured.gain) == (False, None)

    def test_families_are_the_networks_whose_steps_were_measured(self) -> None:
        rows = precisions("transformer", float32=1.0) + precisions("mlp", float32=1.0)
        assert families([*rows, row("precision", "throughput", 1.0, dtype="float32")]) == ["mlp", "transformer"]
        assert families(steps("convnet", {PLAIN: 1.0}, "inference")) == []

    def test_mixed_precision_must_gain_over_tf32_where_there_is_any(self) -> None:
        assert _training.base_precision(dict.fromkeys([PLAIN, TF32, BFLOAT16], row("", "", 1.0))) == "tf32"
        assert _training.base_precision(dict.fromkeys([PLAIN, FLOAT16], row("", "", 1.0))) == "float32"
