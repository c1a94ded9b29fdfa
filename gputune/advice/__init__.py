"""Advice: the value to recommend for each setting, from facts and measured rows, with the reason. Pure; never carried.

The advice on a setting stands in the file of its name, which has

- `recommend(facts, measurements) -> Choice`, always: without a gain, torch's default and the reason;
- if it differs by kind of network, or of a dataset's samples, `of_family(facts, measurements, family) -> Choice |
  None`, None if it was not measured for that kind;
- if the setting has more than two values, or speed in one network refuses one for all, `gain_of(facts, measurements,
  value, family) -> Comparison | None`: the speed of a value over torch's default, in a family or (with an empty one) in
  general; `_evidence.never()` for a value that is refused; None if these rows do not tell;
- if a change must bring more than 3 %, `WORTH`, the ratio from which it is worth it;
- if others' work on the CPUs cannot be the cause of a large gain, `BELIEVED_FROM`, the ratio from which it is believed
  although they worked meanwhile.

A setting without a file here is at torch's default: no bench measures it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gputune import knobs, plugins
from gputune.facts import Facts as Facts
from gputune.knobs import Value
from gputune.measurement import Comparison as Comparison
from gputune.measurement import Measurement as Measurement

Measurements = Sequence[Measurement]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The recommended value of one setting, and why.

    `gain` is the measured speed of the alternative divided by that of torch's default, with its `interval` at 99 %,
    also where the default is kept because of it; both are None where neither was measured. `evidence` names the benches
    behind the choice. `unmeasured`: nothing that would tell was measured, or too little of it. `provisional`: the
    benches were disturbed, or must run again before they are believed. In both cases the value is torch's default,
    or the number of threads that a limit asks for; but a tuned program's provisional settings are those that it has.
    `since` (UTC, ISO 8601): an earlier probe of this machine chose the value, and it still stands.
    """

    value: Value
    gain: float | None = None
    interval: tuple[float, float] | None = None
    reason: str
    evidence: tuple[str, ...] = field(default=())
    unmeasured: bool = False
    provisional: bool = False
    since: str | None = None


def of(name: str) -> Any:
    """The module with the advice on a setting; None if no bench measures it."""
    return plugins.load(__name__, name) if name in plugins.names(__name__) else None


def recommend(name: str, facts: Facts, measurements: Measurements) -> Choice:
    if own := of(name):
        choice: Choice = own.recommend(facts, measurements)
        return choice
    knob = knobs.load(name)
    return Choice(value=knob.DEFAULT, reason=getattr(knob, "UNMEASURED", "torch's default: no bench measures it"))
