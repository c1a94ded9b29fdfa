"""Inference mode: nothing that a bench could recommend."""

from recorded import facts_of

from gputune.settings.inference_mode import NUMERICS, recommend


def test_a_profile_leaves_it_to_the_programs_own_calls() -> None:
    choice = recommend(facts_of(), [])
    assert choice.value is False
    assert "gputune tune" in choice.reason


def test_results_are_the_same_bit_for_bit() -> None:
    assert NUMERICS == "exact"
