"""In the first minute, steps with the settings are timed against steps without, in blocks that take turns.

A small GAN with an R1 penalty took 12.6 ms a step in bfloat16 and channels_last, and 7.3 without. What is slower in
`ROW` pairs of blocks one after the other is turned off.

cuDNN searches only after that: what it finds is for one precision and layout, and a GAN of two models on an H200 waited
22 s for what it found before and after they changed.
"""

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

from ...knobs._compiler import graphs
from ...knobs._signals import is_for_the_program
from .. import flags, observer
from ..clock import Clock
from ..iterations import Iterations
from . import slower_tf32
from .cudnn_search import CAPTURES, SEARCH, UNCLEAR
from .results import Results

WARM = 4
"""Steps with the settings before the first block."""
BLOCK, MOST_STEPS = 0.05, 32
"""Seconds and steps of a block: shorter ones are noisy, longer ones are steps without the settings."""
SLOWER = 1.03
"""A pair counts from this ratio on."""
ROW, ENOUGH, MOST = 6, 3, 14
"""Slower in so many pairs in a row: off. Faster in the first so many: on. Undecided after so many: on."""
FAR, FEW = 3.0, 3
"""So many times as slow in so many pairs in a row: off."""
SECONDS, LOST = 60.0, 1.2
"""After so many seconds, or with so many lost to steps without the settings, which were slower, nothing is timed."""

SEARCHING = 2
"""cuDNN's search is over after so many steps, in which a graph must not be captured."""


def verdict(pairs: Sequence[tuple[float, float]]) -> bool | None:
    """Whether the settings stay on, by the times of blocks with and without; None if it is open."""
    slower = [with_it > SLOWER * without for with_it, without in pairs]
    far = [with_it > FAR * without for with_it, without in pairs]
    if (len(pairs) >= ROW and all(slower[-ROW:])) or (len(pairs) >= FEW and all(far[-FEW:])):
        return False
    lost = sum(without - with_it for with_it, without in pairs)
    is_clear = not any(slower) and (len(pairs) >= ENOUGH or lost > LOST)
    return True if is_clear or len(pairs) >= MOST else None


class Slower(observer.Follower):
    """Compares the settings in these models' calls, once."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self._roots = roots
        self._iterations = Iterations(self._ended, trains=True)
        self._work = self._blocks()
        self._left, self._is_on, self._without_search = 1, True, ExitStack()
        self._place = observer.here()
        self._pairs: list[tuple[float, float]] = []
        self._names: list[str] = []
        """The settings that are timed."""

    def start(self) -> None:
        self._without_search.enter_context(flags.without([SEARCH], UNCLEAR))
        self._iterations.start()
        observer.follow(self)
        next(self._work)

    def capture_begun(self) -> None:
        """Nothing can be switched or searched for within a graph, nor turned off later."""
        flags.set_back(SEARCH, CAPTURES)
        self._end()
        for root in self._roots:
            root.leave_out_of_graphs()

    def optimizer_stepping(self, optimizer: Any) -> None:
        """If another thread or a fork trains one of the models while the settings are off, turn them on for good: no
        block ends there.
        """
        if self._is_on or observer.here() == self._place:
            return
        trained = {id(one) for group in optimizer.param_groups for one in group["params"]}
        models = [root.inner for root in self._roots if root.model is not None]
        if any(id(one) in trained for model in models for one in model.parameters()):
            self._end()

    def _end(self) -> None:
        observer.leave(self._iterations)
        observer.leave(self)
        if not self._is_on:
            self._switch(True)
        self._without_search.close()

    def _ended(self) -> None:
        self._left -= 1
        if self._left > 0:
            return
        try:
            self._left = next(self._work)
        except StopIteration:
            self._end()
        except Exception as error:
            self._end()
            if is_for_the_program(error):
                raise

    def _blocks(self) -> Iterator[int]:
        """How many iterations to let pass before it goes on."""
        until = time.monotonic() + SECONDS
        while not all(map(_is_ready, self._roots)):
            yield 1
            if time.monotonic() > until:  # a model may not be called again
                self._without_search.close()
        yield WARM
        until = time.monotonic() + SECONDS
        # Convolutions in FP32 and channels_last are none of the program's, and cuDNN builds kernels for them.
        if self._are_compiled():
            yield from self._round(["compile"], until)
        if not self._are_compiled():
            for root in self._roots:
                if root.model is not None and not root.is_ddp:
                    root.call.suspects.fixed = set()
            yield from self._round([name for name in self._settings() if name != "compile"], until)
        if not self._settings():
            slower_tf32.watch_again()
        self._without_search.close()
        yield SEARCHING

    def _are_compiled(self) -> bool:
        """Whether any model's calls are compiled. Those whose shapes vary wait for that, perhaps for long."""
        compiled = (one for root in self._roots for one in root.compiled.values())
        return bool(self._settings("compile")) and any(one.has_compiled for one in compiled)

    def _settings(self, *names: str) -> list[str]:
        """Those that are on in any of the models, of these names if any are given."""
        on = [one.name for root in self._roots if root.model is not None for one in root.call.suspects.on]
        return [name for name in dict.fromkeys(on) if name in names or not names]

    def _round(self, names: list[str], until: float) -> Iterator[int]:
        """Time steps with these settings, if any, against steps without."""
        self._names, self._pairs = names, []
        if not names:
            return
        steps = yield from self._steps()
        while (stays := verdict(self._pairs)) is None and time.monotonic() < until:
            yield from self._pair(steps)
        self._switch(True)
        if stays is False:
            self._refuse(steps)

    def _pair(self, steps: int) -> Iterator[int]:
        """Time a block with the settings and one without, the one that is on first."""
        before, clocks, first = graphs(), {}, self._is_on
        for on in (first, not first):
            if on is not self._is_on:
                self._switch(on)
                yield 1  # which pays for the switch
            clocks[on] = Clock()
            yield steps
            clocks[on].stop()
        while (with_it := clocks[True].seconds()) is None or (without := clocks[False].seconds()) is None:
            yield 1
        if graphs() == before:
            self._pairs.append((with_it, without))

    def _steps(self) -> Generator[int, None, int]:
        clock = Clock()
        yield 1
        clock.stop()
        while (seconds := clock.seconds()) is None:
            yield 1
        return min(MOST_STEPS, max(1, round(BLOCK / max(seconds, 1e-6))))

    def _switch(self, on: bool) -> None:
        self._is_on = on
        for root in self._roots:
            if root.model is not None:
                suspects = root.call.suspects
                suspects.go_on() if on else suspects.pause(self._names)

    def _refuse(self, steps: int) -> None:
        with_it, without = (1000 * median(times) / steps for times in zip(*self._pairs[-ROW:], strict=True))
        why = f"a step takes {with_it:.3g} ms with it, and {without:.3g} ms without"
        for root in self._roots:
            if root.model is not None:
                on = [one.name for one in root.call.suspects.on if one.name in self._names]
                root.refuse(on, why) if on else None


def _is_ready(root: Any) -> bool:
    """Whether no setting is on trial in a model, and its results have been compared."""
    suspects = root.model is not None and root.call.suspects
    return not suspects or (suspects.are_settled and not any(isinstance(one, Results) for one in suspects.nets))
