"""The confirmation: starts in turn, plain and with the result applied as `gputune apply` does, each timed by itself."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from gputune.inject.advice import Advice
from gputune.measurement import rounded
from gputune.profile import Confirmation
from gputune.trials.job import Job
from gputune.trials.measuring import BLOCK_SECONDS, COMPILE_SECONDS
from gputune.trials.progress import Told
from gputune.trials.start import Start

PAIRS = 3
FIRST_STEPS = 12
"""The steps that are timed together, since settings are put in, and compiled, in these."""
BLOCKS = 5
STEPS_SECONDS = 0.5
"""How long a block is to take, but for `FEWEST` steps at the least."""
FEWEST = 4
_TURNS = tuple(turn for pair in range(PAIRS) for turn in ((False, True) if pair % 2 == 0 else (True, False)))
"""The starts in turn: whether each has the settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    step: float
    """The time of one step after the first `FIRST_STEPS`."""
    start: float
    """The additional time of the first `FIRST_STEPS`, in which settings are put in and compiled."""


def confirm(start: Start, advice: Advice, told: Told) -> Confirmation:
    """Raises RunFailed."""
    plain: list[Timed] = []
    tuned: list[Timed] = []
    for is_tuned in _TURNS:
        told.confirming("with the settings" if is_tuned else "as it is")
        (tuned if is_tuned else plain).append(timed(start, advice if is_tuned else None))
    return Confirmation(
        plain_ms=tuple(rounded(1000 * one.step) for one in plain),
        tuned_ms=tuple(rounded(1000 * one.step) for one in tuned),
        cost_seconds=rounded(median(one.start for one in tuned) - median(one.start for one in plain)),
    )


def timed(start: Start, advice: Advice | None) -> Timed:
    """One whole start of the program. Raises RunFailed."""
    with Job(start, "time", advice=advice) as job:
        job.first()
        first = job.ask(COMPILE_SECONDS, do="block", steps=FIRST_STEPS)["block"]["seconds"]
        guess = job.ask(BLOCK_SECONDS, do="block", steps=FEWEST)["block"]["seconds"] / FEWEST
        steps = max(FEWEST, round(STEPS_SECONDS / guess))
        patience = max(BLOCK_SECONDS, 10 * steps * guess)
        blocks = [job.ask(patience, do="block", steps=steps)["block"]["seconds"] / steps for _ in range(BLOCKS)]
        job.finish()
    return Timed(step=median(blocks), start=first - FIRST_STEPS * median(blocks))
