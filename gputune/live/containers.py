"""Containers of Python's, and arrays of NumPy's: what they hold, kept in a flat copy and put back into them."""

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from types import ModuleType
from typing import Any

LARGE = 1000
"""The elements above which only the length of a container is kept: a copy would take more than 5 us."""
CONTAINERS = frozenset((dict, OrderedDict, defaultdict, Counter, list, deque, set))
"""The types of attributes and inputs, exactly, whose elements are kept."""
LARGEST_ARRAY = 2**20
"""The bytes above which a numpy array is not kept."""


def container(value: Any) -> Any:
    """The part of a value that is copied before a call: a container itself, or the attributes of an object that is
    neither module nor tensor.
    """
    import torch

    if type(value) in CONTAINERS:
        return value
    other = isinstance(value, torch.nn.Module | torch.Tensor | ModuleType)
    attributes = None if other else getattr(value, "__dict__", None)
    return attributes if type(attributes) is dict else None


def is_array(one: Any) -> bool:
    """Whether it is a numpy array of at most `LARGEST_ARRAY` bytes."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and type(one) is numpy.ndarray and one.nbytes <= LARGEST_ARRAY


def elements(one: Any) -> Iterable[Any]:
    """The elements of a container; none of one that has more than `LARGE`."""
    if type(one) not in CONTAINERS or len(one) > LARGE:
        return ()
    return list(one.values()) if isinstance(one, dict) else list(one)


def copy_of(one: Any) -> Any:
    """A flat copy of a container or an array, or the length of a large container."""
    return len(one) if is_large(one) else one.copy()


def is_large(one: Any) -> bool:
    return not is_array(one) and len(one) > LARGE


def is_as(one: Any, kept: Any) -> bool:
    """Whether a container has the elements that were kept, or the length."""
    if isinstance(kept, int):
        return len(one) == kept
    if is_array(kept):
        return (one.shape, one.dtype, one.tobytes()) == (kept.shape, kept.dtype, kept.tobytes())
    if len(one) != len(kept):
        return False
    if isinstance(one, dict):
        return all(one.get(key, kept) is value for key, value in kept.items())
    return one == kept if isinstance(one, set) else all(new is old for new, old in zip(one, kept, strict=True))


def digest(one: Any) -> int:
    """A number that is another one, but for rare chance, once a container holds other objects."""
    if len(one) > LARGE:
        return len(one)
    if isinstance(one, dict):
        return hash(tuple((key, id(value)) for key, value in one.items() if key != "training"))  # the program's switch
    return hash(frozenset(map(id, one)) if isinstance(one, set) else tuple(map(id, one)))


def put_back(one: Any, kept: Any) -> None:
    """Make a container or an array hold again what it held as this copy of it was made, unless only its length is
    known.
    """
    if isinstance(kept, int) or is_as(one, kept):
        return
    if isinstance(one, dict):
        for key in one.keys() - kept.keys():
            del one[key]
        one.update(dict(kept)) if type(one) is not Counter else dict.update(one, kept)
    elif is_array(kept):
        one[...] = kept
    else:
        one.clear()
        one.update(kept) if isinstance(one, set) else one.extend(kept)
