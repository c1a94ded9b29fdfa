"""A memory of settings that failed in earlier starts of a measuring run, and so are not tried again. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from gputune.inject.loading import WORKERS
from gputune.trials.combination import Combination
from gputune.trials.failure import RunFailed


@dataclass(kw_only=True)
class Attempts:
    """The settings that worked and those that failed in earlier starts."""

    without: set[str] = field(default_factory=set)
    """Settings that failed wherever they were tried."""
    left_out: set[Combination] = field(default_factory=set)
    worked: set[Combination] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    most_workers: int | None = None
    """The most that may be tried, where more failed."""
    traces: bool = True
    """Whether the GPU's work may be traced: not in a program that ended meanwhile."""

    def blame(self, combination: Combination, failure: RunFailed) -> None:
        """Leave out the settings that never worked, or else the combination."""
        self.failed[str(combination)] = str(failure)
        known = {item for one in self.worked for item in one.items}
        if combination.workers and (WORKERS, combination.workers) not in known:
            self.most_workers = combination.workers - 1
            return
        new = {name for name, value in combination.items if (name, value) not in known}
        self.without |= new
        if not new:
            self.left_out.add(combination)
