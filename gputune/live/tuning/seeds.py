"""The random state of a program, shifted from outside, so that runs of it can be told apart from one another.

Where a program seeds itself, its own seeds are shifted: torch's, Python's and NumPy's. Where it does not, it begins
with a fixed state, so that runs can be compared at all; and where it asks for a state that nobody knows, as
`numpy.random.default_rng()` does, it gets one that follows from torch's seed, another one each time.

Seeds of `torch.Generator`, `random.Random` and `numpy.random.RandomState` objects are left alone: what these draw, an
order of samples as a rule, is then the same in all runs. A DataLoader's workers, and the order of one that has no
generator of its own, are seeded from torch's state and follow it.
"""

from __future__ import annotations

import functools
import itertools
import random
import sys
from collections.abc import Callable
from operator import index
from typing import Any

UNSEEDED = 20_261_125
"""The seed of a program that has none of its own."""
MOST = 1 << 32
APART = 7919
"""The distance between two seeds that are given where a program asks for an unpredictable one."""


def shift(by: int) -> None:
    """Shift all seeds of this process by so much, right after `import torch`. With 0 each stays what it is."""
    import torch

    original = torch.manual_seed
    original(UNSEEDED + by)
    random.seed(UNSEEDED + by)
    _wrap(torch, "manual_seed", by)
    torch.random.manual_seed = torch.manual_seed
    for name in ("manual_seed", "manual_seed_all"):
        _wrap(torch.cuda, name, by)
        setattr(torch.cuda.random, name, getattr(torch.cuda, name))
    _wrap(random, "seed", by)
    if "numpy" in sys.modules:
        _numpy(by)
    else:
        sys.meta_path.insert(0, _Numpy(by))


def _wrap(holder: Any, name: str, by: int) -> None:
    original: Callable[..., Any] = getattr(holder, name)
    if not by and name.startswith("manual"):
        return

    @functools.wraps(original)
    def shifted(*inputs: Any, **named: Any) -> Any:
        if not name.startswith("manual") and not inputs and not named:
            return original(_unknown(by))
        if inputs:
            return original(_shifted(inputs[0], by), *inputs[1:], **named)
        return original(**{key: _shifted(value, by) if key in ("seed", "a") else value for key, value in named.items()})

    setattr(holder, name, shifted)


def _shifted(seed: Any, by: int) -> Any:
    """A seed that is a whole number, NumPy's as well, shifted; anything else as it is."""
    try:
        number = index(seed)
    except TypeError:
        return _unknown(by) if seed is None else seed
    return (number + by) % MOST if by and number >= 0 else seed


_unknowns = itertools.count(1)


def _unknown(by: int) -> int:
    """A seed where a program wants none: in each worker of a DataLoader another one."""
    import torch

    return int(torch.initial_seed() + by + APART * next(_unknowns)) % MOST


def _numpy(by: int) -> None:
    numpy_random = sys.modules["numpy"].random
    numpy_random.seed((UNSEEDED + by) % MOST)
    for name in ("seed", "default_rng"):
        _wrap(numpy_random, name, by)


class _Numpy:
    """Waits on `sys.meta_path` until NumPy has been imported by the finders behind it."""

    def __init__(self, by: int) -> None:
        self._by = by
        self._done = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "numpy" or self._done or self not in sys.meta_path:
            return None
        self._done = True
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None and spec.loader is not None:
                self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Any) -> None:
        body = loader.exec_module

        def exec_module(module: Any) -> None:
            body(module)
            _numpy(self._by)

        loader.exec_module = exec_module
