"""The random state of a program, shifted from outside, so that runs of it can be told apart from one another.

Where a program seeds itself, its own seeds are shifted: torch's, Python's and NumPy's. Where it does not, it begins
with a fixed state, so that runs can be compared at all; and where it asks for a state that nobody knows, as
`numpy.random.default_rng()` does, it gets one that follows from torch's seed, another one each time.

Seeds of `torch.Generator`, `random.Random` and `numpy.random.RandomState` objects are left alone: what these draw, an
order of samples as a rule, is then the same in all runs. A DataLoader's workers, and the order of one that has no
generator of its own, are seeded from torch's state and follow it.
"""

import functools
import itertools
import random
from collections.abc import Callable
from operator import index
from typing import Any

from .. import patches
from ..imports import after

UNSEEDED = 20_261_125
"""The seed of a program that has none of its own."""
MOST = 1 << 32
APART = 7919
"""The distance between two seeds that are given where a program asks for an unpredictable one."""


def shift(by: int) -> patches.Undo:
    """Shift all seeds of this process, right after `import torch`. With 0 each stays what it is."""
    import torch

    torch.manual_seed(UNSEEDED + by)
    random.seed(UNSEEDED + by)
    places = ((torch, "manual_seed"), (torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all")) if by else ()
    undoing = []
    for package, name in places:  # each is known under two names
        new = _patched(getattr(package, name), by)
        undoing += [patches.replaced(package, name, new), patches.replaced(package.random, name, new)]
    undoing.append(patches.replaced(random, "seed", _patched(random.seed, by)))

    def imported(numpy: Any) -> None:
        if hasattr(numpy.random.seed, "__wrapped__"):  # imported anew
            return
        numpy.random.seed((UNSEEDED + by) % MOST)
        names = ("seed", "default_rng")
        undoing.extend(patches.replaced(numpy.random, one, _patched(getattr(numpy.random, one), by)) for one in names)

    after("numpy", imported, "seeds of numpy are not shifted")
    return patches.together(undoing)


def _patched(original: Callable[..., Any], by: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def shifted(*inputs: Any, **named: Any) -> Any:
        if not inputs and not named and not original.__name__.startswith("manual"):
            return original(_unknown(by))
        if inputs:
            return original(_shifted(inputs[0], by), *inputs[1:], **named)
        return original(**{key: _shifted(value, by) if key in ("seed", "a") else value for key, value in named.items()})

    return shifted


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
