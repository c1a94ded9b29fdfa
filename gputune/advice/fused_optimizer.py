"""Whether steps run faster with the fused optimizer."""

from dataclasses import replace

from gputune.advice import Choice, Facts, Measurements
from gputune.advice._training import but_for, choice_everywhere, choice_of_option, option


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    what = "training steps ({}) with the fused optimizer"
    choice, slower = choice_everywhere(measurements, "fused_optimizer", what, free=True)
    without = [network for network in slower if not (option(measurements, network, "fused_optimizer") or (False,))[0]]
    return replace(choice, reason=choice.reason + but_for(without)) if choice.value else choice


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    return choice_of_option(measurements, family, "fused_optimizer", "its steps with the fused optimizer")
