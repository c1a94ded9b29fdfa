"""The rule on records that are made up."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from gputune.knobs import Limits, amp_dtype, matmul_precision
from gputune.live.records import Gradient, Output, Recorded
from gputune.trials.guard import PARTS, verdict

DIGITS = random.Random(0)
SKETCHES = [[DIGITS.gauss(0, 1) for _ in range(64)] for _ in range(4)]
OTHERS = [[DIGITS.gauss(0, 1) for _ in range(64)] for _ in range(4)]


def gradient(place: int, *, size: float = 1.0, error: float = 0.0, factor: float = 1.0) -> Gradient:
    """One whose norm is `size`, changed by `factor` and by an error at a right angle of so many times its norm."""
    base = [size * one for one in unit(SKETCHES[place])]
    side = unit(rest(OTHERS[place], unit(SKETCHES[place])))
    found = [factor * one + error * size * other for one, other in zip(base, side, strict=True)]
    return Gradient(math.hypot(*found), tuple(found))


def unit(numbers: list[float]) -> list[float]:
    return [one / math.hypot(*numbers) for one in numbers]


def rest(numbers: list[float], along: list[float]) -> list[float]:
    part = sum(one * other for one, other in zip(numbers, along, strict=True))
    return [one - part * other for one, other in zip(numbers, along, strict=True)]


def losses(last: float = 1.0, count: int = 53, shift: int = 0, **changed: float) -> tuple[float, ...]:
    """From 2 to `last`, with noise of a seed's own but for the first three; `at_7` gives the seventh."""
    noise = random.Random(shift)
    found = [2 + (last - 2) * place / (count - 1) for place in range(count)]
    found[3:] = [one + noise.gauss(0, 0.01) for one in found[3:]]
    for name, value in changed.items():
        found[int(name.removeprefix("at_")) - 1] = value
    return tuple(found)


def output(*numbers: float, name: str = "Net's output", **more: Any) -> Output:
    """One of floats, or of whole numbers if all are such."""
    sample = numbers or (0.5, 1.5)
    given: dict[str, Any] = {"shape": (len(sample),), "is_whole": all(isinstance(one, int) for one in sample)}
    return Output(name=name, sample=sample, total=sum(sample), **{**given, **more})


def record(**more: Any) -> Recorded:
    given: dict[str, Any] = {"losses": losses(), "compared": 3, "steps": ((0.0, 1.0, 1.0),)}
    given["gradients"] = tuple(gradient(place) for place in range(4))
    return Recorded(**{**given, **more})


FP32 = [record(losses=losses(shift=shift)) for shift in range(3)]


BFLOAT16 = amp_dtype.PRECISION_LIMITS


def judge(limits: Limits = BFLOAT16, *, fp32: Any = None, chance: Any = None, **changed: Any) -> Any:
    plain = FP32 if fp32 is None else fp32
    return verdict(plain, [replace(one, **changed) for one in plain[:2]], limits, chance)


def of(**change: float) -> tuple[Gradient, ...]:
    return tuple(gradient(place, **change) for place in range(4))


def test_what_is_the_same_is_accepted() -> None:
    found = judge(Limits())
    assert found.outcome == "accepted"
    assert found.why.startswith("loss within FP32's own spread")
    assert len(found.fp32) == len(found.tuned) == PARTS
    assert all(low <= high for low, high in found.fp32)


class TestNotKnown:
    @pytest.mark.parametrize(
        ("changed", "why"),
        [
            ({"losses": ()}, "no call of backward"),
            ({"losses": (1.0, 1.0)}, "no call of backward"),
            ({"losses": (1.0, 1.0, None, 1.0)}, "no call of backward"),
            ({"losses": losses(at_30=math.nan)}, "the loss is no number in FP32"),
            ({"gradients": (Gradient(0.0, (0.0,) * 64),)}, "in FP32 no gradients"),
            ({"gradients": (Gradient(math.inf, (math.inf,) * 64),)}, "in FP32 no gradients"),
            ({"gradients": (Gradient(math.nan, (math.nan,) * 64),)}, "in FP32 no gradients"),
        ],
    )
    def test_where_a_run_in_fp32_shows_nothing(self, changed: Any, why: str) -> None:
        found = judge(fp32=[*FP32[:2], replace(FP32[2], **changed)])
        assert found.outcome == "unknown"
        assert found.why.startswith(why)

    def test_without_runs(self) -> None:
        assert verdict([], [], Limits()).outcome == "unknown"

    def test_where_runs_of_a_seed_are_no_repetitions(self) -> None:
        found = judge(losses=losses(at_2=2.2), gradients=of(error=1.0))
        assert found.outcome == "unknown"
        assert found.why.startswith("two runs from one seed differ")
        assert "the loss of step 2 is" in str(found.why)
        assert found.fp32

    def test_where_other_iterations_are_compared(self) -> None:
        assert judge(compared=4).why.startswith("two runs from one seed differ")

    def test_but_a_loss_that_is_no_number_or_leaves_the_range_is_refused_all_the_same(self) -> None:
        assert judge(losses=losses(at_2=2.2, at_40=math.nan)).why.startswith("its loss is no number")
        assert judge(losses=losses(last=2.5, at_2=2.2)).why.startswith("its mean loss is")


class TestNumbers:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_loss_that_is_none(self, bad: float) -> None:
        found = judge(losses=losses(at_30=bad))
        assert (found.outcome, str(found.why)) == ("refused", "its loss is no number from step 30 on")
        assert all(map(math.isfinite, found.tuned))

    def test_a_gradient_that_is_none(self) -> None:
        bad = (Gradient(math.nan, (math.nan,) * 64), *of()[1:])
        assert judge(gradients=bad).outcome == "refused"


class TestEqualWeights:
    AT = FP32[0].loss or 0.0

    @pytest.mark.parametrize("limits", [Limits(), matmul_precision.PRECISION_LIMITS, BFLOAT16])
    @pytest.mark.parametrize(
        ("limit", "changed", "why"),
        [
            ("loss", lambda by: {"losses": losses(at_3=TestEqualWeights.AT * (1 + by))}, "the loss of one batch"),
            ("gradients", lambda by: {"gradients": of(error=by)}, "the gradients of one batch at equal weights differ"),
            ("along", lambda by: {"gradients": of(factor=1 + by)}, "the gradients of one batch at equal weights are"),
            ("along", lambda by: {"gradients": of(factor=1 - by)}, "the gradients of one batch at equal weights are"),
        ],
        ids=["the loss", "errors of the gradients", "a factor too large", "a factor too small"],
    )
    def test_differences_within_the_precisions_limit(self, limits: Limits, limit: str, changed: Any, why: str) -> None:
        allowed = getattr(limits, limit)
        assert judge(limits, **changed(0.9 * allowed)).outcome == "accepted"
        found = judge(limits, **changed(1.1 * allowed))
        assert found.outcome == "refused"
        assert found.why.startswith(why)

    def test_a_loss_near_zero_is_held_against_the_usual_one(self) -> None:
        fp32 = [replace(one, losses=(*one.losses[:2], 1e-9, *one.losses[3:])) for one in FP32]
        assert judge(fp32=fp32, losses=losses(at_3=1e-3)).outcome == "accepted"

    @pytest.mark.parametrize(
        ("limits", "size", "changed", "why"),
        [
            (BFLOAT16, 0.2, gradient(0, size=0.2, error=0.9), "the gradient of parameter 0 differs by 90 %"),
            (Limits(), 1e-6, gradient(0, size=1e-3), "loss within"),  # nearly zero, as of a bias before a BatchNorm
            (BFLOAT16, 0.03, Gradient(0.0, (0.0,) * 64), "the gradient of parameter 0 vanishes"),
        ],
    )
    def test_one_parameter_by_its_share_of_all(self, limits: Limits, size: float, changed: Gradient, why: str) -> None:
        fp32 = [replace(one, gradients=(gradient(0, size=size), *of()[1:])) for one in FP32]
        assert judge(limits, fp32=fp32, gradients=(changed, *of()[1:])).why.startswith(why)

    def test_one_that_is_missing(self) -> None:
        found = judge(gradients=of()[1:])
        assert (found.outcome, found.why) == ("refused", "3 parameters have gradients at equal weights instead of 4")


class TestChance:
    """What other random numbers of dropout make of FP32's own gradients is left to the loss."""

    OTHER = record(gradients=of(error=1.0))

    def test_is_asked_for_where_it_may_be_the_reason(self) -> None:
        assert judge(gradients=of(error=0.9)).may_be_chance
        assert judge(Limits(), gradients=of(factor=1.02)).may_be_chance
        assert not judge().may_be_chance
        assert not judge(steps=((1.0, 1.0, 1.0),)).may_be_chance

    def test_explains_as_much(self) -> None:
        assert judge(gradients=of(error=1.9), chance=self.OTHER).outcome == "accepted"
        assert judge(gradients=of(error=2.1), chance=self.OTHER).why.startswith(
            "the gradients of one batch at equal weights differ"
        )

    def test_explains_no_loss_of_another_size(self) -> None:
        assert judge(losses=losses(at_3=2.2), chance=self.OTHER).outcome == "accepted"
        assert judge(losses=losses(at_3=5.0), chance=self.OTHER).why.startswith("the loss of one batch")

    def test_a_gpu_that_adds_in_another_order_explains_nothing(self) -> None:
        nearly = record(gradients=of(error=1e-5))
        assert judge(Limits(), losses=losses(at_3=2.2), chance=nearly).why.startswith("the loss of one batch")
        assert judge(Limits(), gradients=of(factor=1.03), chance=nearly).why.startswith(
            "the gradients of one batch at equal weights are"
        )


FLOATS = tuple(DIGITS.gauss(0, 1) for _ in range(400))
LABELS = tuple(DIGITS.randrange(1000) for _ in range(400))
EXPERTS = (130, 121, 140, 118, 127, 133, 125, 130)


EMPTY = Output(name="Net's output", shape=(0,), is_whole=True, sample=())


def noisy(error: float) -> tuple[float, ...]:
    noise = random.Random(1)
    return tuple(one + noise.gauss(0, error) for one in FLOATS)


def others(count: int) -> tuple[int, ...]:
    return (*(one + 1 for one in LABELS[:count]), *LABELS[count:])


def judge_output(old: Any, new: Any, limits: Limits = BFLOAT16, chance: Any = None) -> Any:
    old, new, chance = (one if one is None or isinstance(one, Output) else output(*one) for one in (old, new, chance))
    fp32 = [replace(one, outputs=(old,)) for one in FP32]
    return judge(limits, fp32=fp32, outputs=(new,), chance=chance and record(outputs=(chance,)))


class TestOutputs:
    @pytest.mark.parametrize("limits", [Limits(), matmul_precision.PRECISION_LIMITS, BFLOAT16])
    def test_floats_differ_within_the_precisions_limit(self, limits: Limits) -> None:
        assert judge_output(FLOATS, noisy(0.9 * limits.outputs), limits).outcome == "accepted"
        found = judge_output(FLOATS, noisy(1.5 * limits.outputs), limits)
        assert found.outcome == "refused"
        assert found.why.startswith("Net's output differs by")
        assert found.may_be_chance

    @pytest.mark.parametrize(
        ("limits", "most"), [(Limits(), 6), (matmul_precision.PRECISION_LIMITS, 12), (BFLOAT16, 60)]
    )
    def test_whole_numbers_differ_in_the_share_that_the_precision_explains(self, limits: Limits, most: int) -> None:
        assert judge_output(LABELS, others(most), limits).outcome == "accepted"
        found = judge_output(LABELS, others(most + 2), limits)
        assert found.outcome == "refused"
        assert found.why.startswith("Net's output differs in")
        assert found.may_be_chance

    def test_the_sentence_names_the_output_and_both_shares(self) -> None:
        old, new = (output(*one, name="Net's output[1]") for one in (LABELS, others(152)))
        said = "Net's output[1] differs in 38 % of its whole numbers at equal weights instead of at most 15 %"
        assert judge_output(old, new).why == said

    def test_what_another_code_makes_of_a_few_floats_is_no_error_of_all(self) -> None:
        assert judge_output(FLOATS, (*(-one for one in FLOATS[:50]), *FLOATS[50:])).outcome == "accepted"
        assert judge_output(FLOATS, (*(-one for one in FLOATS[:80]), *FLOATS[80:])).outcome == "refused"

    def test_a_masks_constant_hides_nothing(self) -> None:
        masked = (*([-1e9] * 100), *FLOATS)
        assert judge_output(masked, (*([-1.002e9] * 100), *noisy(0.01))).outcome == "accepted"
        assert judge_output(masked, (*([-1e9] * 100), *noisy(0.1))).outcome == "refused"
        assert judge_output(masked, (*([-1.2e9] * 100), *FLOATS)).outcome == "refused"

    @pytest.mark.parametrize(
        ("old", "new", "outcome"),
        [
            ((7,), (7,), "accepted"),
            ((200,), (206,), "accepted"),  # how many are right
            ((2,), (3,), "accepted"),
            ((600,), (512,), "refused"),
            ((3, 917, 4, 5), (3, 20, 4, 5), "accepted"),  # a label of four
            ((3, 917, 4, 5), (3, 20, 70, 5), "refused"),
            (EXPERTS, (*(one + 2 for one in EXPERTS[:4]), *(one - 2 for one in EXPERTS[4:])), "accepted"),
            (EXPERTS, tuple(one + 2 for one in EXPERTS), "refused"),  # some were counted twice
            (EXPERTS, (*(one + 20 for one in EXPERTS[:4]), *(one - 20 for one in EXPERTS[4:])), "refused"),
            ((), (), "accepted"),
        ],
    )
    def test_few_whole_numbers_may_be_labels_or_counts(self, old: Any, new: Any, outcome: str) -> None:
        one, other = (output(*numbers, is_whole=True) if numbers else EMPTY for numbers in (old, new))
        assert judge_output(one, other).outcome == outcome

    def test_a_part_of_the_loss_that_is_nearly_zero_is_held_against_the_loss(self) -> None:
        assert judge_output((1e-6,), (5e-6,)).outcome == "accepted"
        assert judge_output((0.1,), (0.5,)).outcome == "refused"

    def test_numbers_that_are_none_in_fp32_either_are_left_out(self) -> None:
        masked = output(*([-math.inf] * 9), *FLOATS, not_finite=9)
        assert judge_output(masked, replace(masked, sample=(*([-math.inf] * 9), *noisy(0.01)))).outcome == "accepted"
        found = judge_output(masked, replace(masked, sample=(*([math.nan] * 10), *FLOATS[1:]), not_finite=10))
        assert (found.outcome, found.why) == ("refused", "Net's output is no number where FP32's is")

    def test_another_number_or_shape_is_refused_unless_chance_makes_one_too(self) -> None:
        said = "models' outputs have another number or shape at equal weights"
        assert judge_output(FLOATS, FLOATS[1:]).why == said
        assert judge_output(FLOATS, LABELS).why == said
        assert judge_output(FLOATS, FLOATS[1:], chance=FLOATS[2:]).outcome == "accepted"

    def test_chance_explains_twice_what_it_makes_of_fp32s(self) -> None:
        assert judge_output(FLOATS, noisy(0.5), chance=noisy(0.3)).outcome == "accepted"
        assert judge_output(FLOATS, noisy(0.9), chance=noisy(0.3)).outcome == "refused"
        assert judge_output(LABELS, others(150), chance=others(80)).outcome == "accepted"
        assert judge_output(LABELS, others(170), chance=others(80)).outcome == "refused"


class TestSteps:
    @pytest.mark.parametrize(
        ("step", "accepted"),
        [
            ((1e-4, 1.0, 1.0), True),
            ((2e-3, 1.0, 1.0), False),
            ((1e-7, 1e-6, 1.0), True),  # what storing it rounds off
            ((1e-5, 1e-6, 1.0), False),
            ((0.0, 0.0, 1.0), True),
            ((1e-3, 0.0, 1.0), False),  # a step where there is none
            ((math.nan, 1.0, 1.0), False),
        ],
    )
    def test_differ_by_rounding_only(self, step: Any, accepted: bool) -> None:
        found = judge(Limits(), steps=((0.0, 1.0, 1.0), step))
        assert (found.outcome == "accepted") is accepted
        assert accepted or found.why.startswith("the optimizer's step differs")

    def test_that_nobody_could_check_are_no_reason(self) -> None:
        assert judge(steps=(), unchecked=("Lion",)).outcome == "accepted"


class TestSpread:
    def test_an_end_outside_of_the_range(self) -> None:
        for last in (0.8, 1.2):
            found = judge(losses=losses(last=last))
            assert found.outcome == "refused"
            assert found.why.startswith("its mean loss is")

    def test_one_run_of_two_is_enough(self) -> None:
        tuned = [FP32[0], replace(FP32[1], losses=losses(last=1.3))]
        assert verdict(FP32, tuned, BFLOAT16).why.startswith("its mean loss is")

    def test_a_single_part_in_the_middle_is_not(self) -> None:
        at: Any = {f"at_{place}": 1.9 for place in range(24, 34)}
        assert judge(losses=losses(**at)).outcome == "accepted"
        later: Any = {f"at_{place}": 1.9 for place in range(44, 54)}
        assert judge(losses=losses(**later)).why.startswith("its mean loss is")

    def test_seeds_that_are_far_apart_allow_more(self) -> None:
        fp32 = [record(losses=losses(last=last, shift=shift)) for shift, last in enumerate((0.8, 1.0, 1.2))]
        assert judge(fp32=fp32, losses=losses(last=1.3)).outcome == "accepted"

    def test_losses_that_are_factors_apart_allow_a_factor_more(self) -> None:
        ends = (0.004, 0.006, 0.010)
        fp32 = [replace(FP32[0], losses=(*FP32[0].losses[:3], *([end] * 50))) for end in ends]
        for end, outcome in ((0.022, "accepted"), (0.030, "refused"), (0.001, "accepted")):
            assert judge(fp32=fp32, losses=(*FP32[0].losses[:3], *([end] * 50))).outcome == outcome

    def test_what_fell_to_nearly_nothing_is_left_alone(self) -> None:
        fp32 = [replace(one, losses=(*one.losses[:3], *([1e-9] * 50))) for one in FP32]
        assert judge(fp32=fp32, losses=(*FP32[0].losses[:3], *([1e-5] * 50))).outcome == "accepted"
        assert judge(fp32=fp32, losses=(*FP32[0].losses[:3], *([1e-2] * 50))).outcome == "refused"

    def test_iterations_without_a_loss_are_left_out(self) -> None:
        assert (
            judge(losses=tuple(None if place in (10, 20) else one for place, one in enumerate(losses()))).outcome
            == "accepted"
        )
