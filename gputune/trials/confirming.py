"""The confirmation: starts in turn, plain and with the result applied as `gputune apply` does, each timed by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from gputune.inject.advice import Advice
from gputune.measurement import rounded
from gputune.profile import Confirmation
from gputune.trials.job import Job
from gputune.trials.measuring import BLOCK_SECONDS, COMPILE_SECONDS
from gputune.trials.progress import Progress
from gputune.trials.start import Start

PAIRS = 3
FIRST_STEPS = 12
"""The steps that are timed together, since settings are put in, and compiled, in these."""
BLOCKS = 5
STEPS_SECONDS = 0.5
"""How long a block is to take, but for `FEWEST` steps at the least."""
FEWEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One start, in seconds."""

    step: float
    """The time of one step after the first `FIRST_STEPS`."""
    start: float
    """The additional time of the first `FIRST_STEPS`, in which settings are put in and compiled."""


def confirm(start: Start, advice: Advice, progress: Callable[[Progress], None]) -> Confirmation:
    """Raises RunFailed."""
    plain: list[Timed] = []
    tuned: list[Timed] = []
    for pair in range(PAIRS):
        turns: Sequence[tuple[list[Timed], Advice | None]] = [(plain, None), (tuned, advice)]
        for number, (times, given) in enumerate(turns if pair % 2 == 0 else turns[::-1]):
            progress(Progress(part="confirming in whole starts", share=(2 * pair + number) / (2 * PAIRS)))
            times.append(timed(start, given))
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
