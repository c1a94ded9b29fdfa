"""The dtype of mixed precision: what pays in training steps, and nothing where none were measured."""

from dataclasses import replace

import pytest
from making import final_losses, precisions, row, steps, steps_with
from recorded import facts_of

from gputune.advice._evidence import NOT_MEASURED
from gputune.advice.amp_dtype import of_family, recommend

H200 = facts_of()


def test_matmuls_alone_recommend_nothing() -> None:
    matmuls = [
        row("precision", "throughput", rate, dtype=dtype) for dtype, rate in (("float32", 51), ("bfloat16", 780))
    ]
    choice = recommend(H200, matmuls)
    assert (choice.value, choice.gain, choice.reason) == (None, None, NOT_MEASURED)
    assert choice.unmeasured


DECODER = precisions("transformer", float32=100.0, tf32=250.0, bfloat16=500.0, float16=505.0)
SMALL = precisions("mlp", float32=100.0, tf32=250.0, bfloat16=200.0, float16=150.0)


class TestOfFamily:
    def test_the_dtype_that_its_steps_are_fastest_in(self) -> None:
        choice = of_family(H200, DECODER, "transformer")
        assert choice.value == "bfloat16"
        assert choice.gain == pytest.approx(2.0)
        what, _, accuracy = choice.reason.partition("; ")
        assert what == "its steps in bfloat16 ran 2 times (2 to 2) as fast as in TF32"
        assert accuracy == "final losses not compared in this run's budget"
        assert choice.evidence == ("training_step",)

    def test_a_network_that_loses_by_it_keeps_fp32_and_the_better_of_both_is_told(self) -> None:
        choice = of_family(H200, SMALL, "mlp")
        assert (choice.value, choice.gain) == (None, pytest.approx(0.8))
        assert choice.reason.startswith("no gain: its steps in bfloat16 ran 0.8 times")

    def test_the_gain_is_that_of_the_precision_alone(self) -> None:
        rates = {
            steps_with(precision, channels_last=last): rate * (1.5 if last else 1.0)
            for last in (False, True)
            for precision, rate in (("float32", 90.0), ("tf32", 100.0), ("bfloat16", 200.0))
        }
        rows = steps("convnet", rates)
        choice = of_family(H200, rows, "convnet")
        assert (choice.value, choice.gain) == ("bfloat16", pytest.approx(2.0))

    def test_what_the_guard_compared_is_said(self) -> None:
        choice = of_family(H200, [*DECODER, *final_losses("transformer", 1.0, 1.1, bfloat16=1.02)], "transformer")
        assert choice.reason.endswith("; its final loss differs from FP32's by no more than FP32's seeds do")

    def test_a_refused_dtype_gives_way_to_the_other_and_is_named(self) -> None:
        rows = [*DECODER, *final_losses("transformer", 1.0, 1.1, bfloat16=1.5, float16=1.0)]
        choice = of_family(H200, rows, "transformer")
        assert choice.value == "float16"
        assert choice.reason.endswith(
            "; bfloat16 refused: its final loss was 1.5 instead of FP32's 1, whose seeds scatter by 0.071"
        )

    def test_where_both_are_refused_the_reasons_are_all_there_is(self) -> None:
        rows = [*DECODER, *final_losses("transformer", 1.0, 1.1, bfloat16=1.5, float16=1.6)]
        choice = of_family(H200, rows, "transformer")
        assert (choice.value, choice.gain) == (None, None)
        assert choice.reason.startswith("bfloat16 refused: its final loss was 1.5 ")
        assert "; float16 refused: its final loss was 1.6 " in choice.reason

    @pytest.mark.parametrize(
        ("rates", "value", "words"),
        [
            ({"float32": 100.0}, None, "this device multiplies neither bfloat16 nor float16 natively"),
            ({"float32": 100.0, "float16": 300.0}, "float16", " as fast as in FP32, with a GradScaler; "),
            ({"float32": 9.0, "tf32": 9.0, "bfloat16": 9.0, "float16": 18.0}, "float16", ", with a GradScaler; "),
        ],
        ids=["a device that has neither", "a GPU without TF32", "a float16 that gains over all"],
    )
    def test_float16_comes_with_a_scaler(self, rates: dict[str, float], value: str | None, words: str) -> None:
        choice = of_family(H200, precisions("mlp", **rates), "mlp")
        assert choice.value == value
        assert words in choice.reason

    def test_too_few_samples_decide_nothing(self) -> None:
        choice = of_family(H200, [replace(one, samples=one.samples[:3]) for one in DECODER], "transformer")
        assert (choice.value, choice.gain) == (None, None)
        assert choice.reason == "too few samples in this run to tell"

    def test_a_network_that_was_not_measured_has_no_choice_of_its_own(self) -> None:
        assert of_family(H200, DECODER, "convnet") is None


class TestOfAllNetworks:
    def test_the_gain_over_all_decides(self) -> None:
        choice = recommend(H200, DECODER + SMALL)
        assert choice.value == "bfloat16"
        assert choice.gain == pytest.approx((2.0 * 0.8) ** 0.5, rel=0.001)
        assert choice.reason.startswith("training steps (mlp, transformer) in bfloat16 ran 1.26 times")
        assert choice.reason.endswith(" as fast as without, though mlp ran slower (see families)")

    def test_without_a_gain_over_all_it_is_none(self) -> None:
        choice = recommend(H200, SMALL)
        assert (choice.value, choice.gain) == (None, pytest.approx(0.8))
        assert choice.reason.startswith("no gain: training steps (mlp) in bfloat16 ran 0.8 times")

    @pytest.mark.parametrize(("rate", "value"), [(505.0, "bfloat16"), (620.0, "bfloat16"), (640.0, "float16")])
    def test_float16_must_be_worth_its_scaler(self, rate: float, value: str) -> None:
        rows = precisions("transformer", float32=100.0, tf32=250.0, bfloat16=500.0, float16=rate)
        assert recommend(H200, rows).value == value

    def test_a_network_with_too_few_samples_is_left_out(self) -> None:
        few = [replace(one, samples=one.samples[:7]) for one in SMALL]
        choice = recommend(H200, DECODER + few)
        assert (choice.value, choice.gain) == ("bfloat16", pytest.approx(2.0))
        assert recommend(H200, few).reason == "too few samples in this run to tell"

    def test_what_one_network_refuses_is_for_none_in_general(self) -> None:
        rows = [*DECODER, *SMALL, *final_losses("mlp", 1.0, 1.1, bfloat16=1.5)]
        assert recommend(H200, rows).value == "float16"
        both = [*DECODER, *final_losses("transformer", 1.0, 1.1, bfloat16=1.5, float16=1.5)]
        assert recommend(H200, both).reason == "the accuracy guard refused it"

    def test_a_dtype_that_one_network_lacks_is_not_compared(self) -> None:
        rows = precisions("mlp", float32=100.0, bfloat16=200.0) + precisions("recurrent", float32=100.0)
        assert recommend(H200, rows).value is None
