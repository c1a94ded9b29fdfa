"""The fused optimizer: where a network's steps, or those of all networks, run faster with it."""

from dataclasses import replace
from typing import Any

import pytest
from making import precisions, steps, steps_with
from recorded import facts_of

from gputune.advice import _training
from gputune.advice import compile as compile_setting
from gputune.advice._evidence import TOO_FEW
from gputune.advice.fused_optimizer import of_family, recommend

H200 = facts_of()
TF32 = steps_with("tf32")
FUSED, COMPILED = TF32.plus("fused_optimizer", True), TF32.plus("compile", True)
BOTH = COMPILED.plus("fused_optimizer", True)


def measured(network: str, fused: float, foreach: float = 100.0) -> list[Any]:
    rates = {TF32: foreach, FUSED: fused}
    return precisions(network, tf32=foreach) + steps(network, rates, "options")


def test_a_gain_over_all_networks() -> None:
    choice = recommend(H200, measured("mlp", 110.0) + measured("transformer", 140.0))
    assert choice.value is True
    assert choice.gain == pytest.approx((1.1 * 1.4) ** 0.5, rel=0.001)
    assert choice.reason.startswith("training steps (mlp, transformer) with the fused optimizer ran 1.24 times")
    assert choice.evidence == ("training_step",)


def uncertain(rows: list[Any], network: str) -> list[Any]:
    return [
        replace(one, samples=tuple(sample * (0.8 + 0.1 * (n * 3 % 5)) for n, sample in enumerate(one.samples)))
        if one.params["network"] == network and "fused_optimizer" in one.params
        else one
        for one in rows
    ]


@pytest.mark.parametrize(("transformer", "convnet", "value"), [(111, 100, True), (101, 100, False), (111, 95, False)])
def test_a_gain_of_one_network_is_not_drowned_by_those_it_does_nothing_for(
    transformer: float, convnet: float, value: bool
) -> None:
    rows = measured("mlp", 102.0) + measured("transformer", transformer) + measured("convnet", convnet)
    choice = recommend(H200, uncertain(rows, "mlp"))
    assert choice.interval is not None
    assert choice.interval[0] < 1
    assert choice.value is value


def test_each_network_has_its_own() -> None:
    rows = measured("mlp", 90.0) + measured("transformer", 140.0)
    own = {name: of_family(H200, rows, name) for name in ("mlp", "transformer")}
    assert {name: choice.value for name, choice in own.items() if choice} == {"mlp": False, "transformer": True}
    assert own["mlp"] is not None
    assert own["mlp"].reason.startswith(
        "no gain: its steps with the fused optimizer ran 0.9 times (0.9 to 0.9) as fast as"
    )


@pytest.mark.parametrize(("convnet", "value"), [(100.5, True), (102.0, True), (100.0, True), (99.5, False)])
def test_where_all_networks_gain_together_each_has_it_unless_certainly_slower(convnet: float, value: bool) -> None:
    rows = measured("transformer", 140.0) + measured("convnet", convnet)
    own = of_family(H200, rows, "convnet")
    assert own is not None
    assert own.value is value
    assert own.reason.startswith("on for all networks, and here it does not certainly lose: ") is value
    alone = of_family(H200, measured("convnet", convnet), "convnet")
    assert alone is not None
    assert alone.value is False


@pytest.mark.parametrize(("mlp", "value"), [(103.0, True), (99.0, True), (96.0, False)])
def test_or_by_more_than_3_percent_even_if_that_is_not_certain(mlp: float, value: bool) -> None:
    own = of_family(H200, uncertain(measured("transformer", 140.0) + measured("mlp", mlp), "mlp"), "mlp")
    assert own is not None
    assert own.interval is not None
    assert own.interval[0] < 1 < own.interval[1]
    assert own.value is value


def test_which_makes_it_a_part_of_the_one_combination_that_the_network_gets() -> None:
    rates = {
        TF32: 100.0,
        FUSED: 102.5,
        COMPILED: 110.0,
        BOTH: 110.2,
    }
    convnet = precisions("convnet", tf32=100.0) + steps("convnet", rates, "options")
    assert _training.best(convnet, "convnet") == COMPILED
    rows = convnet + measured("transformer", 140.0)
    assert _training.best(rows, "convnet") == BOTH
    option = compile_setting.of_family(H200, rows, "convnet")
    assert option is not None
    assert option.gain == pytest.approx(110.2 / 102.5, rel=0.001), "both with the fused optimizer"


def test_a_network_is_named_as_slower_only_where_its_own_choice_is_another() -> None:
    rates = {
        TF32: 100.0,
        FUSED: 98.0,
        COMPILED: 120.0,
        BOTH: 121.0,
    }
    convnet = precisions("convnet", tf32=100.0) + steps("convnet", rates, "options")
    rows = convnet + measured("transformer", 140.0)
    own = of_family(H200, rows, "convnet")
    assert own is not None
    assert own.value is True
    assert "slower" not in recommend(H200, rows).reason
    assert recommend(H200, rows + measured("mlp", 98.0)).reason.endswith("though mlp ran slower (see families)")


def test_no_gain_is_torchs_default_and_says_so() -> None:
    choice = recommend(H200, measured("mlp", 101.0))
    assert (choice.value, choice.gain) == (False, pytest.approx(1.01))
    assert choice.reason.startswith("no gain: ")


def test_not_measured() -> None:
    assert recommend(H200, measured("mlp", 120.0)[:-1]).value is False
    assert of_family(H200, measured("mlp", 120.0)[:-1], "mlp") is None
    assert of_family(H200, measured("mlp", 120.0), "convnet") is None
    only_fused = precisions("mlp", tf32=100.0) + steps("mlp", {FUSED: 200.0}, "options")
    assert of_family(H200, only_fused, "mlp") is None


def test_too_few_samples() -> None:
    rows = [replace(one, samples=one.samples[:7]) for one in measured("mlp", 150.0)]
    assert (recommend(H200, rows).value, recommend(H200, rows).reason) == (False, TOO_FEW)
