"""Whether compiled steps run faster, and after how many steps compiling has paid."""

import math
from dataclasses import replace

from gputune.advice import Choice, Comparison, Facts, Measurements, _training
from gputune.advice._evidence import compared, first, never
from gputune.advice._training_rows import BENCH, steps
from gputune.resources.printable import counted

NOTHING_SECONDS = 0.2
"""A first step that was so fast has compiled nothing: torch runs an LSTM as it is."""


def recommend(facts: Facts, measurements: Measurements) -> Choice:
    choice, slower = _training.choice_everywhere(measurements, "compile", "compiled training steps ({})")
    if choice.value and slower:
        reason = f"not for every kind of network: {choice.reason}{_training.but_for(slower)}"
        return replace(choice, value=False, reason=reason)
    return choice


def gain_of(facts: Facts, measurements: Measurements, value: bool, family: str = "") -> Comparison | None:
    if family:
        return (_training.option(measurements, family, "compile") or (False, None))[1]
    pairs = _training.pairs_of(measurements, "compile")
    return never() if _training.losing(pairs) else _training.pooled_pairs(pairs)


def of_family(facts: Facts, measurements: Measurements, family: str) -> Choice | None:
    choice = _training.choice_of_option(measurements, family, "compile", "its compiled steps")
    return choice and replace(choice, reason=choice.reason + _cost(measurements, family))


def _cost(measurements: Measurements, family: str) -> str:
    taken = first(measurements, BENCH, "compile_time", network=family)
    chosen = _training.best(measurements, family)
    if taken is None or chosen is None:
        return ""
    if taken.median < NOTHING_SECONDS:
        return "; torch.compile found nothing in it to compile"
    words = f"; compiling took {taken.median:.3g} s"
    rows = steps(measurements, family, "options")
    compiled, eager = rows.get(chosen.plus("compile", True)), rows.get(chosen.minus("compile"))
    comparison = compared(compiled, eager)
    batch = eager.params.get("batch") if eager else None
    if not eager or not comparison or comparison.ratio <= 1 or "compile" not in chosen:
        return words
    if type(batch) is not int or batch < 1:  # the row of another version
        return words
    saved = batch / eager.median * (1 - 1 / comparison.ratio)
    return f"{words}, paid back after {counted(math.ceil(taken.median / saved), 'step')}"
