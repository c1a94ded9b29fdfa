"""The guard's runs: FP32 three times and a combination twice, from the start, each pair with the same seeds."""

from __future__ import annotations

from typing import Any

from gputune.inject.advice import Advice
from gputune.profile import Guard
from gputune.trials import guard
from gputune.trials.combination import Combination
from gputune.trials.job import Job
from gputune.trials.measuring import COMPILE_SECONDS
from gputune.trials.progress import Told
from gputune.trials.recorded import Recorded
from gputune.trials.start import Start

FP32_SHIFTS = (0, 1, 2)
TUNED_SHIFTS = (0, 1)


class Runs:
    """The runs of one program; those in FP32 serve all combinations."""

    def __init__(self, *, start: Start, steps: int, told: Told, plain: Advice | None = None) -> None:
        """`plain` is what those in FP32 have, too: workers, with which a dataset draws other random numbers."""
        self._plain = plain
        self._start, self._steps, self._told = start, steps, told
        self._fp32: list[Recorded] = []
        self._chance: Recorded | None = None

    def of(self, combination: Combination, advice: Advice) -> Guard:
        """Run the program in FP32, if that has not been done, and with a combination; return the guard's verdict on the
        combination. Raises RunFailed where the program itself fails.
        """
        if not self._fp32:
            self._fp32 = [self._recorded(self._plain, shift) for shift in FP32_SHIFTS]
        tuned = [self._recorded(advice, shift) for shift in TUNED_SHIFTS]
        precision = combination.precision
        found = guard.verdict(self._fp32, tuned, precision)
        if found.may_be_chance:
            found = guard.verdict(self._fp32, tuned, precision, self._by_chance())
        unchecked = dict.fromkeys(why for one in tuned for why in one.unchecked)
        words = [found.why, *(f"the optimizer's step was not compared ({why})" for why in unchecked)]
        return Guard(
            verdict=found.outcome, steps=self._steps, reason="; ".join(words), fp32=found.fp32, tuned=found.tuned
        )

    def _by_chance(self) -> Recorded:
        """FP32 with the first seed, up to the compared iteration, in which dropout draws other numbers."""
        if self._chance is None:
            steps = self._fp32[0].compared
            self._chance = self._recorded(self._plain, FP32_SHIFTS[0], steps=steps)
        return self._chance

    def _recorded(self, advice: Advice | None, shift: int, *, steps: int | None = None) -> Recorded:
        """One run; with `steps` one of so many, in which dropout draws other numbers."""
        self._told.guarding(f"{'FP32' if advice is self._plain else 'with the settings'}, seed {shift + 1}")
        other_numbers = steps is not None
        with Job(self._start, "guard", shift=shift, advice=advice, other_numbers=other_numbers) as job:
            job.first()
            answer: dict[str, Any] = job.ask(COMPILE_SECONDS, do="record", steps=steps or self._steps)
            job.finish()
        return Recorded.from_plain(answer["recorded"])
