"""What compiling costs a program, for as long as it runs.

The first compile of a model is the price of the setting. All that is compiled later, for other shapes or because the
model has changed, may take `MOST_MORE` seconds in the process, and `SHARE` of the time after that. A T5 on batches of
their own length, and a Faster R-CNN, had not done 60 steps after 240 s, where 8 s were enough uncompiled.
"""

import time
from collections.abc import Callable
from typing import Any

from ...knobs._compiler import graphs
from ...knobs._outputs import PLAIN, items

MOST_MORE = 15.0
"""Seconds. With more a program's output would come late; with less, few models are compiled for any shape."""
SHARE = 0.02
NOTICEABLE = 5.0
"""Seconds of a first compile from which on it is told."""

Run = Callable[..., Any]


class Costs:
    """The seconds that compiling has taken in this process beyond the first compile of each model."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._more = 0.0
        self._since: float | None = None

    def begin(self) -> None:
        self._since = self.clock() if self._since is None else self._since

    def add(self, seconds: float) -> None:
        self._more += seconds

    def left(self) -> float:
        passed = 0.0 if self._since is None else self.clock() - self._since
        return MOST_MORE + SHARE * passed - self._more


ALL = Costs()
"""Those of this process."""


class Compiling:
    """A model's call, compiled for the shapes of its first call, and once more for any shape (`dynamic=True`) as soon
    as there is time for that; else uncompiled.
    """

    def __init__(  # noqa: PLR0913
        self,
        make: Callable[[bool, Callable[[], bool]], Run],
        uncompiled: Run,
        seen: set[Any],
        *,
        say: Callable[[str], None] = lambda line: None,
        failed: Callable[[str], None] = lambda why: None,
        costs: Costs = ALL,
    ) -> None:
        """`make` compiles the call, for any shape if its first argument says so; it asks the second before each graph,
        and leaves the graph uncompiled if there is no time. `seen` are the signatures of calls before: if the first
        call has another one, shapes vary.
        """
        self._make, self._uncompiled, self._seen = make, uncompiled, seen
        self._say, self._failed, self._costs = say, failed, costs
        self._fixed: Run | None = None
        self._any: Run | None = None
        self._first: Any = None
        self._price: float | None = None
        """Seconds of the first compile."""
        self._begun = 0.0
        self._is_spent = False

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        call = self._chosen(signature((inputs, named)))
        if call is None:
            return self._uncompiled(*inputs, **named)
        before, self._begun = graphs(), self._costs.clock()
        try:
            return call(*inputs, **named)
        finally:
            if graphs() != before:
                self._pay(self._costs.clock() - self._begun, call)

    def _chosen(self, given: Any) -> Run | None:
        if self._price is None:
            self._first = given
            varies = bool(self._seen) and given not in self._seen
            if varies:
                self._any = self._any or self._make(True, self._may_go_on)
                return self._any
            self._fixed = self._fixed or self._make(False, self._may_go_on)
        if self._fixed is not None and given == self._first:
            return self._fixed
        if self._any is None and not self._is_spent and (self._price or 0.0) <= self._costs.left():
            self._any = self._make(True, self._may_go_on)
        return self._any

    def _may_go_on(self) -> bool:
        """Whether another graph may be compiled in the call that runs."""
        return self._price is None or self._costs.left() > self._costs.clock() - self._begun

    def _pay(self, seconds: float, call: Run) -> None:
        if self._price is None:
            self._price = seconds
            self._costs.begin()
            if seconds >= NOTICEABLE:
                self._say(f"torch.compile took {seconds:.0f} s")
            return
        self._costs.add(seconds)
        if self._costs.left() >= 0:
            return
        self._is_spent = True
        why = f"compiling again and again took {seconds + MOST_MORE - self._costs.left() - seconds:.0f} s"
        if call is self._any and self._fixed is not None:
            self._any = None
            self._say(f"{why}: calls with other shapes than the first run uncompiled")
        else:
            self._failed(why)


def signature(given: Any) -> Any:
    """The shapes of the tensors in the inputs of a call, and its numbers and words."""
    shape = getattr(given, "shape", None)
    if shape is not None:
        return tuple(shape)
    if type(given) in PLAIN:
        return given
    return type(given), tuple((key, signature(one)) for key, one in items(given))
