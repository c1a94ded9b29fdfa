"""The whole starts of the program that check a result: the guard's runs, and the confirmation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from gputune.live.advice import Advice
from gputune.live.orders import Done, Record, TimeBlock
from gputune.live.records import Recorded
from gputune.measurement import rounded
from gputune.profile import Confirmation, Guard
from gputune.resources.unreadable import Cause
from gputune.search.combination import Combination
from gputune.trials import guard
from gputune.trials.command import RunningCommand
from gputune.trials.failure import How, RunFailed
from gputune.trials.measuring import BLOCK_SECONDS, COMPILE_SECONDS
from gputune.trials.progress import TuneProgress
from gputune.trials.start import Start

TIME_IS_OVER: tuple[How, ...] = ("late", "never stepped")
"""The failures of a start, of a program that was measured before, by which the time for the tune is over."""
NO_GAIN: Cause = "no_gain"
"""The cause of a program's gap where a combination gains nothing in whole starts."""
FP32_SHIFTS = (0, 1, 2)
TUNED_SHIFTS = (0, 1)


class GuardRuns:
    """FP32 three times, once for all combinations, and each of these twice, with FP32's first two seeds."""

    def __init__(self, *, start: Start, steps: int, told: TuneProgress, plain: Advice | None = None) -> None:
        """`plain` is what those in FP32 have, too: workers, with which a dataset draws other random numbers."""
        self._plain = plain
        self._start, self._steps, self._told = start, steps, told

    def of(self, combination: Combination, advice: Advice) -> Guard:
        """The guard's verdict on a combination. Raises RunFailed where the program itself fails."""
        try:
            return self._of(combination, advice)
        except RunFailed as failure:
            if failure.how not in TIME_IS_OVER:
                raise
            return Guard(verdict="unknown", steps=self._steps, reason="the time for the tune was over before")

    def _of(self, combination: Combination, advice: Advice) -> Guard:
        fp32 = self._fp32
        tuned = [self._recorded(advice, shift) for shift in TUNED_SHIFTS]
        found = guard.verdict(fp32, tuned, combination.limits)
        if found.may_be_chance:
            found = guard.verdict(fp32, tuned, combination.limits, self._by_chance)
        unseen = self._unseen([*fp32, *tuned]) if found.outcome != "refused" else ()
        return Guard(
            verdict=found.outcome,
            steps=self._steps,
            reason="; ".join([found.why, *unseen]),
            fp32=found.fp32,
            tuned=found.tuned,
        )

    def _unseen(self, runs: Sequence[Recorded]) -> Iterator[str]:
        """What the runs did not show, so that nothing is known of it."""
        yield from dict.fromkeys(why for one in runs for why in one.unchecked)
        if not any(one.outputs for one in runs):
            yield "no output of a model was seen"
        if not any(one.evaluates for one in runs):
            yield f"no evaluation ran within {self._steps} steps"

    @cached_property
    def _fp32(self) -> list[Recorded]:
        return [self._recorded(self._plain, shift) for shift in FP32_SHIFTS]

    @cached_property
    def _by_chance(self) -> Recorded:
        """FP32 with the first seed, up to the compared iteration, in which dropout draws other numbers."""
        return self._recorded(self._plain, FP32_SHIFTS[0], steps=self._fp32[0].compared)

    def _recorded(self, advice: Advice | None, shift: int, *, steps: int | None = None) -> Recorded:
        """One run; with `steps` one of so many, in which dropout draws other numbers."""
        self._told.guarding(f"{'FP32' if advice is self._plain else 'with the settings'}, seed {shift + 1}")
        other_numbers = steps is not None
        with RunningCommand(self._start, "guard", shift=shift, advice=advice, other_numbers=other_numbers) as command:
            command.first(Done)
            recorded = command.ask(COMPILE_SECONDS, Record(steps=steps or self._steps))
            command.finish()
        return recorded


FIRST_STEPS = 12
"""The steps that are timed together, since settings are put in, and compiled, in these."""
BLOCKS = 5
STEPS_SECONDS = 0.5
"""How long a block is to take, but for `FEWEST` steps at the least."""
FEWEST = 4
TURNS = (False, True, True, False, False, True)
"""The starts in turn: whether each has the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    step: float
    """The time of one step after the first `FIRST_STEPS`."""
    start: float
    """The additional time of the first `FIRST_STEPS`, in which settings are put in and compiled."""


def confirm(start: Start, advice: Advice, told: TuneProgress, most: int) -> Confirmation | None:
    """Time starts in turn, plain and with the result applied as `gputune apply` does, each for at most so many steps.
    None if the time for the tune is over before. Raises RunFailed.
    """
    plain: list[Timed] = []
    tuned: list[Timed] = []
    for is_tuned in TURNS:
        told.confirming("with the settings" if is_tuned else "as it is")
        try:
            (tuned if is_tuned else plain).append(timed(start, advice if is_tuned else None, most))
        except RunFailed as failure:
            if failure.how not in TIME_IS_OVER:
                raise
            return None
    return Confirmation(
        plain_ms=tuple(rounded(1000 * one.step) for one in plain),
        tuned_ms=tuple(rounded(1000 * one.step) for one in tuned),
        cost_seconds=rounded(median(one.start for one in tuned) - median(one.start for one in plain)),
    )


def why_no_gain(found: Confirmation, combination: Combination, length: int | None) -> str:
    """Why a combination gains nothing in whole starts of a program that ends after `length` steps, if that is known;
    empty if it does.
    """
    plain, tuned = median(found.plain_ms), median(found.tuned_ms)
    if tuned >= plain:
        return f"in whole starts {plain:.4g} ms without it, and {tuned:.4g} with it"
    saved, cost = (plain - tuned) / 1000, found.cost_seconds
    if combination.is_compiled and length is not None and cost > saved * length:
        return f"its start takes {cost:.3g} s longer, more than it saves until the program's end"
    return ""


def timed(start: Start, advice: Advice | None, most: int) -> Timed:
    """One whole start of the program, for at most so many steps, if not less than a few. Raises RunFailed."""
    with RunningCommand(start, "time", advice=advice) as command:
        command.first(Done)
        first = command.ask(COMPILE_SECONDS, TimeBlock(steps=FIRST_STEPS)).seconds
        guess = command.ask(BLOCK_SECONDS, TimeBlock(steps=FEWEST)).seconds / FEWEST
        steps = max(FEWEST, min(round(STEPS_SECONDS / guess), (most - FIRST_STEPS - FEWEST) // BLOCKS))
        patience = max(BLOCK_SECONDS, 10 * steps * guess)
        blocks = [command.ask(patience, TimeBlock(steps=steps)).seconds / steps for _ in range(BLOCKS)]
        command.finish()
    return Timed(step=median(blocks), start=first - FIRST_STEPS * median(blocks))
