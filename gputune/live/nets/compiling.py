"""What compiling costs a program, for as long as it runs.

The first compile of a model is the price of the setting. All that is compiled later, for other shapes or because the
model has changed, may take `MOST_MORE` seconds in the process, and `SHARE` of the time after that. A T5 on batches of
their own length, and a Faster R-CNN, had not done 60 steps after 240 s, where 8 s were enough uncompiled.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from ...knobs._compiler import graphs
from ...knobs._outputs import PLAIN, items
from ...knobs._signals import passed_a_handler

MOST_MORE = 15.0
"""Seconds. With more a program's output would come late; with less, few models are compiled for any shape."""
SHARE = 0.02
MOST_FIRST = 60.0
"""Seconds of a first compile after which no further graph of it is begun: a detector has dozens."""
EXPECTED = 60.0
"""Seconds that a compile for any shape is taken to need as long as none is known. A T5's took more than 120."""
NOTICEABLE = 5.0
"""Seconds of a first compile from which on it is told."""
ALIKE = 4
"""So many models of one kind may be compiled for their own price. A loop over folds or clients has hundreds."""

DEEP = 6
"""The levels of inputs that are looked into."""

Run = Callable[..., Any]


class Costs:
    """The seconds that compiling has taken in this process beyond the first compile of each model."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.more = 0.0
        self._since: float | None = None
        self._firsts: dict[Any, list[float]] = defaultdict(list)
        """The seconds of first compiles, by the kind of the model."""
        self._interrupted: set[Any] = set()

    def begin(self) -> None:
        self._since = self.clock() if self._since is None else self._since

    def left(self) -> float:
        passed = 0.0 if self._since is None else self.clock() - self._since
        return MOST_MORE + SHARE * passed - self.more

    def may_begin(self, kind: Any) -> bool:
        """Whether there is time for a first compile of another model of a kind."""
        known = self._firsts.get(kind, [])
        return kind not in self._interrupted and (len(known) < ALIKE or known[-1] <= self.left())

    def took_first(self, kind: Any, seconds: float) -> None:
        if len(self._firsts[kind]) >= ALIKE:
            self.more += seconds
        self._firsts[kind].append(seconds)

    def was_interrupted(self, kind: Any) -> None:
        """Begin no more of that kind: a time limit of the program's would end them all."""
        self._interrupted.add(kind)


ALL = Costs()
"""Those of this process."""


class Compiling:
    """A model's call, compiled for the shapes of its first call, and once more for any shape (`dynamic=True`) as soon
    as there is time for that; else uncompiled. If shapes vary from the start, that one compile is the price, and waits
    until the program has run for long enough. A compile that a signal handler of the program's interrupts, as for a
    time limit, would be interrupted again: it is the last one.
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
        kind: Any = None,
    ) -> None:
        """`make` compiles the call, for any shape if its first argument says so; it asks the second before each graph,
        and leaves the graph uncompiled if there is no time. `seen` are the signatures of calls before: if the first
        call has another one, shapes vary. `kind` tells models apart that are compiled otherwise.
        """
        costs.begin()
        self._make, self._uncompiled, self._seen = make, uncompiled, seen
        self._say, self._failed, self._costs, self._kind = say, failed, costs, kind
        self._fixed: Run | None = None
        self._any: Run | None = None
        self._first: Any = None
        self._price: float | None = None
        """Seconds of the first compile."""
        self._each = 0.0
        """Seconds of one of its graphs."""
        self._begun = 0.0
        self._is_spent, self._varies = False, False
        self._returned: list[Run] = []
        """The compiled calls that have returned once."""

    @property
    def has_compiled(self) -> bool:
        return self._price is not None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        call = self._chosen(signature((inputs, named)))
        if call is None:
            return self._uncompiled(*inputs, **named)
        before, self._begun = graphs(), self._costs.clock()
        try:
            output = call(*inputs, **named)
            if call not in self._returned:
                self._returned.append(call)
            return output
        except BaseException as error:
            if call not in self._returned and passed_a_handler(error):
                self._costs.was_interrupted(self._kind)
                self._failed(f"a signal handler of the program's raised {type(error).__name__} while it was compiled")
            raise
        finally:
            if made := graphs() - before:
                self._pay(self._costs.clock() - self._begun, made, call)

    def _chosen(self, given: Any) -> Run | None:
        if self._first is None:
            self._first, self._varies = given, bool(self._seen) and given not in self._seen
        if given == self._first and not self._varies:
            if self._fixed is None and self._costs.may_begin(self._kind):
                self._fixed = self._make(False, self._may_go_on)
            return self._fixed
        price = EXPECTED if self._price is None else self._price
        if self._any is None and not self._is_spent and price <= self._costs.left():
            self._any = self._make(True, self._may_go_on)
        return self._any

    def _may_go_on(self) -> bool:
        """Whether another graph may be compiled in the call that runs."""
        passed = self._costs.clock() - self._begun
        return passed < MOST_FIRST if self._price is None else self._costs.left() >= passed + self._each

    def _pay(self, seconds: float, made: int, call: Run) -> None:
        if self._price is None:
            self._price, self._each = seconds, seconds / made
            self._costs.took_first(self._kind, seconds)
            if seconds >= NOTICEABLE:
                self._say(f"torch.compile took {seconds:.0f} s")
            return
        self._costs.more += seconds
        if self._costs.left() >= 0:
            return
        self._is_spent = True
        why = f"compiling again took {self._costs.more:.0f} s"
        if call is self._any and self._fixed is not None:
            self._any = None
            self._say(f"{why}: calls with other shapes than the first run uncompiled")
        else:
            self._failed(why)


def signature(given: Any, depth: int = DEEP) -> Any:
    """The shapes of the tensors in the inputs of a call, also in mappings and objects, and its numbers and words."""
    import torch

    if isinstance(given, torch.Tensor):
        return shape(given)
    if type(given) in PLAIN or not depth:
        return given if type(given) in PLAIN else type(given)
    found = items(given) if isinstance(given, dict | list | tuple) else _inside(given).items()
    return type(given), tuple((key, signature(one, depth - 1)) for key, one in found)


def shape(tensor: Any) -> tuple[int, ...]:
    """A nested tensor has none."""
    return () if tensor.is_nested else tuple(tensor.shape)


def _inside(given: Any) -> Mapping[Any, Any]:
    if isinstance(given, Mapping):
        return given
    is_torchs = type(given).__module__.partition(".")[0] == "torch"  # as a tracer's stand-in for a tensor
    return {} if is_torchs else getattr(given, "__dict__", {})
