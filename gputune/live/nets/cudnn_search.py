"""cuDNN does not search in the first steps of a training, before settings are turned on in its models.

What it finds is for one precision and layout, and these are about to change. The first step of a diffusion model on an
H200 took 23 s with the search, and 6 s without.
"""

from contextlib import ExitStack

from .. import flags, observer

SEARCH = "cudnn_benchmark"
UNCLEAR = "off until it is clear what else stays on"
CAPTURES = "the program captures a CUDA graph, in which cuDNN cannot search"
PASSES = 100
"""So many backward passes without a decision about settings are enough: an optimizer may never step."""
_begun: list["FirstSteps"] = []


def watch() -> None:
    """Put the search off from the first backward pass on, if gputune has turned it on."""
    if flags.is_ours(SEARCH, True):
        _begun.append(FirstSteps())
        observer.follow(_begun[0])


def leave() -> None:
    """Let cuDNN search, unless something else puts that off."""
    for one in _begun:
        one.end()


class FirstSteps(observer.Follower):
    def __init__(self) -> None:
        self._put_off = ExitStack()
        self._passes = 0

    def gradients_begun(self) -> None:
        self._passes += 1
        if self._passes == 1:
            self._put_off.enter_context(flags.without([SEARCH], UNCLEAR))
        elif self._passes > PASSES:
            self.end()

    def capture_begun(self) -> None:
        """What ran before it was not searched for, and within a graph nothing can be."""
        if self._passes:
            flags.set_back(SEARCH, CAPTURES)
        self.end()

    def end(self) -> None:
        observer.leave(self)
        self._put_off.close()
