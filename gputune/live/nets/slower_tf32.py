"""TF32 is timed in a program whose models' calls are left as they are.

A solver that keeps an error below a tolerance takes more steps, the less exact its function is: with TF32 torchdiffeq's
ode_demo, whose tolerance is torchdiffeq's own of 1e-7, took more than twice as long on an H200.

So half of the first iterations are made without TF32, always the same ones, that a run can be repeated.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import takewhile
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
FAR, FEW = 3.0, 3
"""So many times as long in so many pairs in a row is enough: those iterations are late."""
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
    for one in _begun:
        one.end()


def watch_again() -> None:
    """Time it from now on, as nothing else is switched any more."""
    leave()
    _begun.clear()
    watch()


def is_without(timed: int) -> bool:
    """Whether the iteration of this number is made without TF32: by the sequence of Thue and Morse, of which each pair
    has one such, since a program may have work for every second step.
    """
    return timed.bit_count() % 2 == 1


def is_slower(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether iterations take longer with TF32, by the times of pairs with it and without."""
    if len(pairs) >= FEW and all(with_it > FAR * without for with_it, without in pairs[-FEW:]):
        return True
    if len(pairs) < PAIRS:
        return False
    all_with, all_without = zip(*pairs, strict=True)
    certain = sum(with_it > without for with_it, without in pairs) >= CERTAIN
    return certain and median(all_with) >= SLOWER * median(all_without)


class SlowerTF32(observer.Follower):
    def __init__(self) -> None:
        self._iterations = Iterations(self._ended, trains=True)
        self._made, self._is_over = 0, False
        self._clocks: list[Clock] = []
        self._without = ExitStack()

    def start(self) -> None:
        self._iterations.start()
        observer.follow(self)

    def capture_begun(self) -> None:
        self.end()  # as a graph keeps the precision that it is captured in

    def end(self) -> None:
        self._is_over = True
        observer.leave(self._iterations)
        observer.leave(self)
        self._without.close()
        self._clocks.clear()

    def _ended(self) -> None:
        if self._is_over:  # an event that was on its way
            return
        self._made += 1
        try:
            self._without.close()
            if not self._may_go_on():
                self.end()
            elif self._made >= WARM:
                self._go_on(self._made - WARM)
        except Exception as error:
            self.end()
            if is_for_the_program(error):
                raise

    def _go_on(self, timed: int) -> None:
        for one in self._clocks[-1:]:
            one.stop()
        pairs = self._pairs()
        if is_slower(pairs):
            self._turn_off(pairs)
        if is_slower(pairs) or len(pairs) == PAIRS:
            self.end()
        elif timed < 2 * PAIRS:
            if is_without(timed):
                self._without.enter_context(flags.without([SETTING]))
            self._clocks.append(Clock())

    def _pairs(self) -> list[tuple[float, float]]:
        """The seconds with TF32 and without, as far as the GPU is."""
        seconds = takewhile(lambda one: one is not None, (one.seconds() for one in self._clocks))
        times = [one for one in seconds if one is not None]
        pairs = enumerate(zip(times[::2], times[1::2], strict=False))
        return [(two, one) if is_without(2 * number) else (one, two) for number, (one, two) in pairs]

    def _may_go_on(self) -> bool:
        """A compiled graph would be compiled again wherever TF32 is switched, and a captured one would keep it."""
        import torch

        obstacles = (
            "torch._dynamo" in sys.modules and graphs() > 0,
            torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing(),
            torch.are_deterministic_algorithms_enabled(),
        )
        return flags.is_ours(SETTING, "tf32") and not any(obstacles)

    def _turn_off(self, pairs: Sequence[tuple[float, float]]) -> None:
        with_it, without = (1000 * median(times) for times in zip(*pairs, strict=True))
        why = f"a step takes {with_it:.3g} ms with it, and {without:.3g} ms without"
        if flags.set_back(SETTING, why):
            say(f"{SETTING} tf32 was turned off: {why}")
