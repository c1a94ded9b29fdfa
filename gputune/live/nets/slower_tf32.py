"""TF32 is timed where it is all that gputune changes in a program's computations.

A solver that keeps an error below a tolerance takes more steps, the less exact its function is: with TF32 torchdiffeq's
ode_demo, whose tolerance is torchdiffeq's own of 1e-7, took more than twice as long on an H200.

So of the first iterations every second one is made without TF32, always the same ones, that a run can be repeated.
"""

import sys
from contextlib import ExitStack
from statistics import median

from ...knobs._compiler import graphs
from ...knobs._signals import is_for_the_program
from .. import flags, observer, say
from ..clock import Clock
from ..iterations import Iterations

WARM = 4
"""Iterations before the first one that is timed."""
PAIRS, CERTAIN = 24, 19
"""So many of these pairs must be slower with TF32, which 3 of 1000 programs would be by chance."""
SLOWER = 1.1
"""So many times as long must an iteration take with TF32, by the medians."""
SETTING = "matmul_precision"
_begun: list["SlowerTF32"] = []
"""The one of this process."""


def watch() -> None:
    """Time TF32 once in this process, if gputune has set it."""
    if not _begun and flags.is_ours(SETTING, "tf32") and "torch.optim" in sys.modules:
        _begun.append(SlowerTF32())
        _begun[0].start()


def leave() -> None:
    """Time it no more."""
    while _begun:
        _begun.pop().end()


class SlowerTF32:
    def __init__(self) -> None:
        self._iterations = Iterations(self._ended, trains=True)
        self._made = 0
        self._clocks: list[Clock] = []
        """Of iterations with and without, in turn."""
        self._without = ExitStack()

    def start(self) -> None:
        self._iterations.start()

    def end(self) -> None:
        observer.leave(self._iterations)
        self._without.close()

    def _ended(self) -> None:
        self._made += 1
        try:
            self._without.close()
            if self._made >= WARM:
                self._go_on(self._made - WARM)
        except Exception as error:
            self.end()
            if is_for_the_program(error):
                raise

    def _go_on(self, timed: int) -> None:
        for one in self._clocks[-1:]:
            one.stop()
        if not self._may_go_on():
            self.end()
        elif timed < 2 * PAIRS:
            if timed % 2:
                self._without.enter_context(flags.without([SETTING]))
            self._clocks.append(Clock())
        else:
            self._judge()

    def _may_go_on(self) -> bool:
        """A compiled graph would be compiled again wherever TF32 is switched, and a captured one would keep it."""
        import torch

        obstacles = (
            "torch._dynamo" in sys.modules and graphs() > 0,
            torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing(),
            torch.are_deterministic_algorithms_enabled(),
        )
        return flags.is_ours(SETTING, "tf32") and not any(obstacles)

    def _judge(self) -> None:
        seconds = [one.seconds() for one in self._clocks]
        times = [one for one in seconds if one is not None]
        if len(times) < len(seconds):  # the GPU is not that far
            return
        self.end()
        with_it, without = times[::2], times[1::2]
        slower = sum(one > other for one, other in zip(with_it, without, strict=True))
        if slower < CERTAIN or median(with_it) < SLOWER * median(without):
            return
        figures = f"{1000 * median(with_it):.3g} ms with it, and {1000 * median(without):.3g} ms without"
        why = f"a step takes {figures}"
        if flags.set_back(SETTING, why):
            say(f"{SETTING} tf32 was turned off: {why}")
