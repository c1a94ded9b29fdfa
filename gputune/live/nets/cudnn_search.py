"""cuDNN does not search in the first steps of a training, before settings are turned on in its models.

What it finds is for one precision and layout, and these are about to change. A diffusion model on an H200, beside three
other programs, was 26 s late in its first step.
"""

import time
from contextlib import ExitStack

from .. import flags, observer

SEARCH = "cudnn_benchmark"
UNCLEAR = "off until it is clear what else stays on"
CAPTURES = "the program captures a CUDA graph, in which cuDNN cannot search"
SECONDS = 60.0
"""Seconds after the first backward pass, after which nothing more is waited for."""
_begun: list["FirstSteps"] = []


def watch() -> None:
    """Put the search off from the first backward pass on: what trains nothing keeps its settings."""
    _begun.append(FirstSteps())
    observer.follow(_begun[0])


def leave() -> None:
    """Let cuDNN search, unless something else puts that off."""
    for one in _begun:
        one.end()


class FirstSteps(observer.Follower):
    def __init__(self) -> None:
        self._put_off = ExitStack()
        self._until: float | None = None

    def backward_begun(self, losses: list[object]) -> None:
        if self._until is None:
            self._until = time.monotonic() + SECONDS
            self._put_off.enter_context(flags.without([SEARCH], UNCLEAR))
        elif time.monotonic() > self._until:
            self.end()

    def capture_begun(self) -> None:
        if self._until is not None:
            flags.set_back(SEARCH, CAPTURES)
        self.end()

    def end(self) -> None:
        observer.leave(self)
        self._put_off.close()
