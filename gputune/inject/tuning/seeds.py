"""The random state of a program, shifted from outside, so that runs of it can be told apart from one another.

Where a program seeds itself, its own seeds are shifted: torch's, Python's and NumPy's. Where it does not, it begins
with a fixed state, so that runs can be compared at all. Generators that a program makes and seeds itself are left
alone: what they draw, an order of samples as a rule, is then the same in all runs. A DataLoader's workers are seeded
from torch's state and follow it.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from typing import Any

UNSEEDED = 20_261_125
"""The seed of a program that has none of its own."""
MOST = 1 << 32


def shift(by: int) -> None:
    """Shift all seeds of this process by so much, right after `import torch`."""
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

    @functools.wraps(original)
    def shifted(*inputs: Any, **named: Any) -> Any:
        if inputs and isinstance(inputs[0], int):
            inputs = ((inputs[0] + by) % MOST if inputs[0] >= 0 else inputs[0], *inputs[1:])
        elif isinstance(named.get("seed"), int):
            named = {**named, "seed": (named["seed"] + by) % MOST}
        return original(*inputs, **named)

    if by:
        setattr(holder, name, shifted)


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
