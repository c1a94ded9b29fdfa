"""Throughput by number of workers of one source: given numbers, or the contenders of a rough search, timed in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from gputune.advice._loading_rows import LoadingParams
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
"""The same of given numbers of workers; if larger, the scatter of the first rounds drops the one to be chosen."""


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
    def still_worth(self) -> float:
        return STILL_WORTH_GIVEN if self.counts else STILL_WORTH

    @property
    def longest(self) -> float:
        return max(self.seconds, self.at_most or 0.0)


def measure(trial: WorkerTrial) -> Curve:
    """Time the counts of a trial in turn, or those that a search finds. One whose loader fails is in `failed`; raises
    UserCodeError where none works.
    """
    curve, streams = Curve(), _Streams(trial)
    started = time.monotonic()
    try:
        _in_turn(trial, streams, curve, started, trial.counts or _found(trial, streams, curve, started))
    finally:
        streams.keep([])
    return curve


def _found(trial: WorkerTrial, streams: _Streams, curve: Curve, started: float) -> Sequence[int]:
    _search(trial, streams, curve, started + SEARCH_SHARE * trial.seconds)
    _check_working(curve, any(map(any, curve.rough.values())))
    working = {count: rates for count, rates in curve.rough.items() if count not in curve.failed}
    cost = {count: taken + max(1, count) * trial.step_seconds for count, taken in curve.sample_seconds.items()}
    left = trial.longest - (time.monotonic() - started)
    return affordable(working, cost, left, trial.enough, workers=trial.alive)


def _search(trial: WorkerTrial, streams: _Streams, curve: Curve, deadline: float) -> None:
    source = trial.source
    sampled(
        search(trial.limit, trial.enough, source.epoch_batches if source.indices is not None else None),
        rate=lambda count: _rough(streams, curve, count, trial.block_seconds),
        over=lambda: time.monotonic() >= deadline and any(map(any, curve.rough.values())),
    )


def _rough(streams: _Streams, curve: Curve, count: int, seconds: float) -> float:
    rate = 0.0
    if count not in curve.failed:
        try:
            stream = streams.of(count)
            before = time.monotonic()
            rate = stream.rate(seconds)
            curve.sample_seconds[count] = time.monotonic() - before
        except UserCodeError as error:
            curve.failed[count] = error
            streams.drop(count, failed=True)
            if streams.separate():
                # A worker that is stopped may hold a lock that all loaders share: from now on only one loader is alive.
                del curve.failed[count]
                return _rough(streams, curve, count, seconds)
    curve.rough.setdefault(count, []).append(rate)
    return rate


def _in_turn(trial: WorkerTrial, streams: _Streams, curve: Curve, started: float, names: Sequence[int]) -> None:
    streams.keep(names)

    def take(count: int) -> Callable[[], float]:
        each = trial.source.samples / median(curve.rough[count]) if trial.step_seconds else 0.0
        return lambda: streams.of(count).rate(trial.block_seconds, trial.step_seconds, each)

    def on_working(arms: dict[int, Arm], run: Callable[[list[Arm]], None]) -> dict[int, Arm]:
        left = dict(arms)
        while left:
            try:
                run(list(left.values()))
                break
            except UserCodeError as error:
                curve.failed[streams.latest] = error
                streams.drop(streams.latest, failed=True)
                del left[streams.latest]
        return left

    def further(left: list[Arm]) -> None:
        passed = time.monotonic() - started
        longest = trial.longest if arms.get(0) in left else trial.seconds
        in_turn(ranked(left), trial.seconds - passed, longest - passed)

    arms = {count: Arm(params={"workers": count}, run=take(count), work=1) for count in names}
    raced = on_working(arms, lambda left: race(left, started + trial.longest - time.monotonic()))
    raced = {count: arm for count, arm in raced.items() if arm.samples}
    _check_working(curve, bool(raced))
    worth = worth_timing(raced, trial.still_worth)
    left = {count: arm for count, arm in raced.items() if arm in worth}
    if len(left) > 1:
        left = on_working(left, further)
    timed = {count: arm for count, arm in raced.items() if count in left or not count}
    curve.rates = {count: arm.samples for count, arm in timed.items()}
    curve.rough |= {count: arm.samples for count, arm in raced.items() if count not in timed and not trial.step_seconds}


def _check_working(curve: Curve, working: bool) -> None:
    if not working:
        raise next(iter(curve.failed.values()), UserCodeError("no batch was loaded"))


def worth_timing(arms: Mapping[int, Arm], still_worth: float) -> list[Arm]:
    """The arms to go on with after the first rounds: those that may be the best, with at least the share `still_worth`
    of its rate, and those by which workers are held against none, unless these lie far apart already.
    """
    medians = {count: median(arm.samples) for count, arm in arms.items()}
    best = max(medians, key=lambda count: medians[count])
    others = [count for count in medians if bool(count) != bool(best)]
    rival = max(others, key=lambda count: medians[count], default=best)
    told_apart = rival != best and arms[best].against(arms[rival]) is not None
    return [
        arm
        for count, arm in arms.items()
        if (count == rival and not told_apart) or (medians[count] >= still_worth * medians[best])
    ]


class _Streams:
    def __init__(self, trial: WorkerTrial) -> None:
        self._trial = trial
        self._alive: dict[int, Stream] = {}
        self._alone = False
        self.latest = 0

    def separate(self) -> bool:
        """Keep only one loader alive at a time from now on; whether several were."""
        new = not self._alone and any(self._alive)
        self._alone = True
        return new

    def of(self, count: int) -> Stream:
        self.latest = count
        if self._alone:
            self.keep([count])
        if count not in self._alive:
            for other in list(self._alive):
                if other and sum(self._alive) + count > self._trial.alive:
                    self.drop(other)
            self._alive[count] = Stream(self._trial.source, self._trial.options(count))
            self._alive[count].open()
        return self._alive[count]

    def keep(self, counts: Sequence[int]) -> None:
        for count in [count for count in self._alive if count not in counts]:
            self.drop(count)

    def drop(self, count: int, *, failed: bool = False) -> None:
        stream = self._alive.pop(count, None)
        if stream:
            stream.close(failed=failed)
