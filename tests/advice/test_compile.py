"""torch.compile: where steps gain by it, what compiling costs, and after how many steps that has paid."""

from dataclasses import replace
from typing import Any

import pytest
from making import precisions, row, steps, steps_with
from recorded import facts_of

from gputune.advice._evidence import NOT_MEASURED
from gputune.advice.compile import of_family, recommend

H200 = facts_of()
EAGER = steps_with("bfloat16")
COMPILED = EAGER.plus("compile", True)


def measured(network: str, compiled: float, eager: float = 6400.0) -> list[Any]:
    return precisions(network, bfloat16=eager) + steps(network, {EAGER: eager, COMPILED: compiled}, "options")


def took(network: str, seconds: float) -> Any:
    made = row("training_step", "compile_time", 1.0, network=network, stage="options")
    return replace(made, unit="s", samples=(seconds,))


def test_a_gain_says_after_how_many_steps_compiling_has_paid() -> None:
    """A step of 64 at 6400 samples a second takes 10 ms; 1.25 times as fast it saves 2 ms, of which 20 s are 10,000."""
    choice = of_family(H200, [*measured("transformer", 8000.0), took("transformer", 20.0)], "transformer")
    assert (choice.value, choice.gain) == (True, pytest.approx(1.25))
    what, _, steps_needed = choice.reason.rpartition(" after ")
    ran = "its compiled steps ran 1.25 times (1.25 to 1.25) as fast as with torch's default"
    assert what == f"{ran}; compiling took 20 s, paid back"
    assert int(steps_needed.removesuffix(" steps")) == pytest.approx(10_000, rel=0.01)


def test_what_does_not_pay_says_what_it_took_and_no_more() -> None:
    choice = of_family(H200, [*measured("mlp", 6300.0), took("mlp", 7.5)], "mlp")
    assert choice.value is False
    assert choice.reason.startswith("no gain: its compiled steps ran 0.984 times")
    assert choice.reason.endswith("; compiling took 7.5 s")


def test_it_is_told_beside_the_other_options_that_were_chosen() -> None:
    fused, both = (one.plus("fused_optimizer", True) for one in (EAGER, COMPILED))
    rates = {EAGER: 100.0, COMPILED: 150.0, fused: 120.0, both: 180.0}
    choice = of_family(H200, precisions("mlp", bfloat16=100.0) + steps("mlp", rates, "options"), "mlp")
    assert (choice.value, choice.gain) == (True, pytest.approx(1.5))


def test_a_compiler_that_worked_only_with_another_option_cannot_be_told() -> None:
    rates = {EAGER: 100.0, COMPILED.plus("fused_optimizer", True): 180.0}
    choice = of_family(H200, precisions("mlp", bfloat16=100.0) + steps("mlp", rates, "options"), "mlp")
    assert choice is None


def test_over_all_networks_it_must_gain() -> None:
    choice = recommend(H200, measured("mlp", 6500.0) + measured("transformer", 9600.0))
    assert choice.value is True
    assert choice.gain == pytest.approx((6500 / 6400 * 1.5) ** 0.5, rel=0.001)
    assert choice.reason.startswith("compiled training steps (mlp, transformer) ran 1.23 times")


def test_and_no_network_may_lose() -> None:
    choice = recommend(H200, measured("mlp", 6000.0) + measured("transformer", 12800.0))
    assert choice.value is False
    assert choice.gain is not None
    assert choice.gain > 1.3
    assert choice.reason.startswith("not for every kind of network: compiled training steps (mlp, transformer)")
    assert choice.reason.endswith(", though mlp ran slower (see families)")


def test_not_measured() -> None:
    without = precisions("mlp", bfloat16=100.0) + steps("mlp", {EAGER: 100.0}, "options")
    assert (recommend(H200, without).value, recommend(H200, without).reason) == (False, NOT_MEASURED)
    assert of_family(H200, without, "mlp") is None
