"""How a run of the user's program can fail."""

from dataclasses import dataclass
from typing import Literal

How = Literal["raised", "recompiled", "memory", "ended", "silent", "never stepped", "nodes", "trains", "answers"]


@dataclass(eq=False, kw_only=True)
class RunFailed(Exception):
    """A run gave no result."""

    how: How
    """It raised an exception, was compiled anew in the middle, ran out of the GPU's memory, ended, was silent for too
    long, never took a step, spans several nodes, trains after calls that were taken for its steps, or ended without any
    step after such calls."""
    detail: str = ""
    rank: int | None = None
    when: str = ""
    """When it ended, in words."""

    def __str__(self) -> str:
        who = f"rank {self.rank} " if self.rank is not None else "it "
        words = {
            "raised": f"{who}raised {self.detail}",
            "recompiled": f"{who}was compiled anew while it was timed",
            "memory": f"{who}ran out of the GPU's memory",
            "ended": f"{who}ended{self.when and f' {self.when}'}{self.detail and f' ({self.detail})'}",
            "silent": f"{who}took no step for {self.detail}",
            "never stepped": f"neither a training step nor calls without gradients were seen within {self.detail}",
            "nodes": "it runs on several nodes",
            "trains": "it trains after it has called its model without gradients",
            "answers": "it has an optimizer and trains nothing",
        }
        return words[self.how]
