"""The numbers that a model holds of which torch.compile may make wrong ones: floats, and what is in deques. They are
looked for in its modules' attributes and classes, and some levels deep in containers and objects of the program's own.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from ..knobs._called import PLACE
from ..resources.sample_state import in_slots

DEEP = 4
"""The levels below a module's attributes and classes that are looked into."""
MOST = 2_000
"""The containers and objects that are looked into, and the elements of one."""


class Numbers:
    """The numbers of a model, as they are now."""

    def __init__(self, model: Any) -> None:
        self._floats: dict[int, float] = {}
        self._deques: list[tuple[deque[Any], list[Any]]] = []
        for value in _values(model):
            if type(value) is float:
                self._floats[id(value)] = value
            elif isinstance(value, deque):
                self._deques.append((value, list(value)))

    def have_changed(self, model: Any) -> bool:
        """Whether the model now holds another float, or one of the deques another element."""
        if any(list(map(id, one)) != list(map(id, kept)) for one, kept in self._deques):
            return True
        return any(type(value) is float and id(value) not in self._floats for value in _values(model))


def _values(model: Any) -> Iterator[Any]:
    import torch

    skipped = (torch.nn.Module, torch.Tensor, type, ModuleType, FunctionType, property, str, bytes, int, float, complex)
    modules = list(model.modules())
    classes = {one for module in modules for one in type(module).__mro__ if not one.__module__.startswith("torch.")}
    torchs = {PLACE, *vars(torch.nn.Module())}
    holders = (list(vars(one).items()) for one in (*modules, *classes))
    found = [value for held in holders for name, value in held if name not in torchs]
    known: set[int] = set()
    for _ in range(DEEP):
        yield from found
        level = []
        for one in found:
            if not (one is None or isinstance(one, skipped) or id(one) in known or len(known) == MOST):
                known.add(id(one))
                level.append(one)
        found = [value for one in level for value in _inside(one)]
    yield from found


def _inside(one: Any) -> Iterable[Any]:
    """The elements of a container, or the attributes of an object, also those in slots."""
    if isinstance(one, dict | list | tuple | set | frozenset | deque):
        elements = one.values() if isinstance(one, dict) else one
        return list(elements) if len(one) <= MOST else ()
    attributes = getattr(one, "__dict__", None)
    return [*in_slots(one), *(attributes.values() if isinstance(attributes, dict) else ())]
