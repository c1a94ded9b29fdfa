"""How a run of the user's program can fail, and which settings failed in earlier starts."""

from dataclasses import dataclass, field
from typing import Literal

from gputune.knobs.dataloader_workers import WORKERS
from gputune.search.combination import Combination

How = Literal[
    "raised", "recompiled", "memory", "ended", "over", "short", "silent", "stopped", "late", "never stepped", "nodes",
    "trains", "answers", "invalid", "finished", "no room",
    "gradients",
]  # fmt: skip


@dataclass(eq=False, kw_only=True)
class RunFailed(Exception):
    how: How
    """It raised an exception, was compiled anew in the middle, ran out of the GPU's memory, ended, came to the end of
    its steps, is too short to be measured, was silent for too long, was stopped by a signal, used up the time for the
    tune, never took a step, spans several nodes, trains after calls that were taken for its steps, ended without any
    step after such calls, sent an invalid message, came to its end without a fault before it was measured, found no
    room for what it writes, or called its models with gradients on and never stepped."""
    detail: str = ""
    rank: int | None = None
    when: str = ""
    steps: int = 0
    """How many steps, or calls, it made until its end; 0 where it did not say."""
    may_train: bool = False
    """Whether it came to the end of its calls, and seems to train after them."""

    def __str__(self) -> str:
        who = f"rank {self.rank} " if self.rank is not None else "it "
        ended = f"{who}ended{self.when and f' {self.when}'}{self.detail and f' ({self.detail})'}"
        words = {
            "raised": f"{who}raised {self.detail}",
            "recompiled": f"{who}was compiled anew while it was timed",
            "memory": f"{who}ran out of the GPU's memory",
            "ended": ended,
            "finished": ended,
            "over": f"{who}ended after {self.steps} steps",
            "short": self.detail,
            "silent": f"{who}took no step for {self.detail}",
            "stopped": f"{who}was stopped by a signal: {self.detail}",
            "late": "the time for the tune is over",
            "never stepped": f"neither a training step nor calls without gradients were seen within {self.detail}",
            "gradients": f"it made {self.steps} calls or more with gradients on, and no optimizer step",
            "nodes": "it runs on several nodes",
            "trains": "it trains after it has called its model without gradients",
            "answers": "it has an optimizer and trains nothing",
            "no room": f"{who}found no room for what it writes",
            "invalid": f"{who}sent gputune an invalid message: {self.detail}",
        }
        return words[self.how]


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
    length: int | None = None
    """How many steps, or calls without gradients, a start makes in all, once one has come to its end."""
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
