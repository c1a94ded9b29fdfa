"""Throughput by number of workers of one source: given numbers, or the contenders of a rough search, timed in turn."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from gputune.advice._evidence import LoadingParams
from gputune.bench_process import Context
from gputune.benches._timing import Arm, Metric, in_turn, race
from gputune.benches._user_code import UserCodeError
from gputune.benches.loading.source import Options, Source
from gputune.benches.loading.stream import Stream
from gputune.facts.gap import Gap
from gputune.measurement import LOOKS, Measurement
from gputune.resources.printable import counted
from gputune.search.rounds import ranked
from gputune.search.workers import affordable, sampled, search

BLOCK_SECONDS = 0.08
SEARCH_SHARE = 0.5
"""The search's share of the seconds; the rest is for the contenders in turn."""
STILL_WORTH = 0.93
"""The share of the best rate below which a contender of a search is not timed any longer after the first rounds."""
STILL_WORTH_GIVEN = 0.7
"""The share of the best rate below which a number of workers that was given is not timed any longer after the first
rounds. With a larger share their scatter would drop the number that is to be chosen."""


def row(context: Context, bench: str, samples: Sequence[float], params: LoadingParams) -> Measurement:
    return Metric(bench, "samples/s").row(context, samples[: LOOKS[-1]], params.params)


@dataclass(kw_only=True)
class Curve:
    """Samples per second by number of workers; `rates` were taken in turn, with the consumer's step."""

    rates: dict[int, list[float]] = field(default_factory=dict)
    rough: dict[int, list[float]] = field(default_factory=dict)
    """From the search, without the consumer's step, or the first rounds of given numbers that fell behind."""
    failed: dict[int, UserCodeError] = field(default_factory=dict)
    sample_seconds: dict[int, float] = field(default_factory=dict)
    """How long the latest sample of the search took."""

    @property
    def all_rates(self) -> dict[int, list[float]]:
        """By number of workers, the samples taken in turn, or the rough ones where there are no others."""
        return {**self.rough, **self.rates}

    def gaps(self, fact: str) -> Iterator[Gap]:
        for count, error in sorted(self.failed.items()):
            yield Gap(fact=fact, reason=f"{counted(count, 'worker')}: {error}", cause=error.cause)


@dataclass(kw_only=True)
class WorkerTrial:
    source: Source
    options: Callable[[int], Options] = Options
    limit: int = 0
    """The most workers of one loader that a search tries."""
    alive: int
    """The most workers that may exist at once; beyond that loaders are ended, and started again."""
    counts: tuple[int, ...] | None = None
    """The numbers of workers to time in turn; None: those that a search finds."""
    seconds: float
    at_most: float | None = None
    """Seconds after which it ends in any case, where `seconds` were too few to say anything."""
    step_seconds: float = 0.0
    enough: float | None = None
    """Samples per second that the consumer takes."""
    block_seconds: float = BLOCK_SECONDS

    @property
    def longest(self) -> float:
        return max(self.seconds, self.at_most or 0.0)


def measure(trial: WorkerTrial) -> Curve:
    """Time the counts of a trial in turn, or those that a search finds. Raises UserCodeError where none works."""
    run = _Run(trial)
    try:
        run.time_in_turn(trial.counts or run.find())
    finally:
        run.keep([])
    return run.curve


class _Run:
    """A trial at work: its loaders that are alive, by number of workers, and the curve so far."""

    def __init__(self, trial: WorkerTrial) -> None:
        self.trial, self.curve, self.started = trial, Curve(), time.monotonic()
        self._alive: dict[int, Stream] = {}
        self._alone = False
        self._latest = 0

    def find(self) -> Sequence[int]:
        """Search roughly; return the contenders that there is time for."""
        trial, curve, source = self.trial, self.curve, self.trial.source
        deadline = self.started + SEARCH_SHARE * trial.seconds
        sampled(
            search(trial.limit, trial.enough, source.epoch_batches if source.indices is not None else None),
            rate=self._rough,
            over=lambda: time.monotonic() >= deadline and any(map(any, curve.rough.values())),
        )
        self._check_working(any(map(any, curve.rough.values())))
        working = {count: rates for count, rates in curve.rough.items() if count not in curve.failed}
        cost = {count: taken + max(1, count) * trial.step_seconds for count, taken in curve.sample_seconds.items()}
        left = trial.longest - (time.monotonic() - self.started)
        return affordable(working, cost, left, trial.enough, workers=trial.alive)

    def _rough(self, count: int) -> float:
        rate, curve = 0.0, self.curve
        if count not in curve.failed:
            try:
                stream = self._stream(count)
                before = time.monotonic()
                rate = stream.rate(self.trial.block_seconds)
                curve.sample_seconds[count] = time.monotonic() - before
            except UserCodeError as error:
                self._fail(error)
                if not self._alone:
                    # A worker that is stopped may hold a lock that all loaders share: only one loader is alive now.
                    self._alone = True
                    if any(self._alive):
                        del curve.failed[count]
                        return self._rough(count)
        curve.rough.setdefault(count, []).append(rate)
        return rate

    def time_in_turn(self, counts: Sequence[int]) -> None:
        self.keep(counts)
        trial, curve, started = self.trial, self.curve, self.started

        def further(left: list[Arm]) -> None:
            passed = time.monotonic() - started
            longest = trial.longest if arms.get(0) in left else trial.seconds
            in_turn(ranked(left), trial.seconds - passed, longest - passed)

        arms = {count: Arm(params={"workers": count}, run=self._take(count), work=1) for count in counts}
        raced = self._on_working(arms, lambda left: race(left, started + trial.longest - time.monotonic()))
        raced = {count: arm for count, arm in raced.items() if arm.samples}
        self._check_working(bool(raced))
        left = worth_timing(raced, STILL_WORTH_GIVEN if trial.counts else STILL_WORTH)
        if len(left) > 1:
            left = self._on_working(left, further)
        timed = {count: arm for count, arm in raced.items() if count in left or not count}
        curve.rates = {count: arm.samples for count, arm in timed.items()}
        if not trial.step_seconds:
            curve.rough |= {count: arm.samples for count, arm in raced.items() if count not in timed}

    def _take(self, count: int) -> Callable[[], float]:
        trial = self.trial
        each = trial.source.samples / median(self.curve.rough[count]) if trial.step_seconds else 0.0
        return lambda: self._stream(count).rate(trial.block_seconds, trial.step_seconds, each)

    def _on_working(self, arms: dict[int, Arm], run: Callable[[list[Arm]], None]) -> dict[int, Arm]:
        """Run the arms until none of them fails; those that are left."""
        left = dict(arms)
        while left:
            try:
                run(list(left.values()))
                break
            except UserCodeError as error:
                self._fail(error)
                del left[self._latest]
        return left

    def _check_working(self, working: bool) -> None:
        if not working:
            raise next(iter(self.curve.failed.values()), UserCodeError("no batch was loaded"))

    def _fail(self, error: UserCodeError) -> None:
        self.curve.failed[self._latest] = error
        self._drop(self._latest, failed=True)

    def _stream(self, count: int) -> Stream:
        self._latest = count
        if self._alone:
            self.keep([count])
        if count not in self._alive:
            for other in list(self._alive):
                if other and sum(self._alive) + count > self.trial.alive:
                    self._drop(other)
            self._alive[count] = Stream(self.trial.source, self.trial.options(count))
            self._alive[count].open()
        return self._alive[count]

    def keep(self, counts: Sequence[int]) -> None:
        """End all loaders but those with so many workers."""
        for count in [count for count in self._alive if count not in counts]:
            self._drop(count)

    def _drop(self, count: int, *, failed: bool = False) -> None:
        stream = self._alive.pop(count, None)
        if stream:
            stream.close(failed=failed)


def worth_timing(arms: Mapping[int, Arm], still_worth: float) -> dict[int, Arm]:
    """The arms to go on with after the first rounds: those that may be the best, with at least the share `still_worth`
    of its rate, and those by which workers are held against none, unless these lie far apart already.
    """
    medians = {count: median(arm.samples) for count, arm in arms.items()}
    best = max(medians, key=lambda count: medians[count])
    others = [count for count in medians if bool(count) != bool(best)]
    rival = max(others, key=lambda count: medians[count], default=best)
    told_apart = rival != best and arms[best].against(arms[rival]) is not None
    return {
        count: arm
        for count, arm in arms.items()
        if (count == rival and not told_apart) or medians[count] >= still_worth * medians[best]
    }
