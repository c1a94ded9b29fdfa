"""The values that a model holds before and after a call: floats and deques, of which torch.compile may make wrong ones,
and tensors that the call has computed, which mixed precision would leave there in half precision. They are looked for
in the modules' attributes and classes, and some levels deep in containers and objects of the program's own.
"""

import weakref
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

from ..knobs._called import PLACE
from ..knobs._outputs import Known, Uncopied, changed, tensors
from ..knobs._restored import restored
from ..knobs._signals import is_for_the_program
from ..resources.sample_state import in_slots
from .containers import container, copy_of, is_array, is_as
from .reach import variables

DEEP = 4
"""The levels below a module's attributes and classes that are looked into."""
MOST = 2_000
"""The containers and objects that are looked into."""
MOST_ELEMENTS = 100_000
"""The elements of a container that is looked into."""

LAST = 64
"""The last elements of a list or deque, which a call may have added."""

Attribute = tuple["weakref.ref[Any]", str, str]
"""A module, the name of one of its dictionaries, and what stands there."""


class Held:
    """The values of a model's attributes, and all that they lead to, at the moment when this is made."""

    def __init__(self, model: Any) -> None:
        self.values = [value for *_, value in _attributes(model)]
        self.reached = list(reached(self.values))
        self._floats = {id(value): value for value in self.reached if type(value) is float}
        self._deques = [(value, list(value)) for value in self.reached if isinstance(value, deque)]
        self._others = {id(value): value for value in self.reached if not isinstance(value, int | float | str | bytes)}

    def has_other_numbers(self, model: Any) -> bool:
        """Whether the model now holds another float, or one of the deques another element."""
        if any(list(map(id, one)) != list(map(id, kept)) for one, kept in self._deques):
            return True
        now = reached(value for *_, value in _attributes(model))
        return any(type(value) is float and id(value) not in self._floats for value in now)

    def computed(self, model: Any) -> tuple[list[Attribute], str | None]:
        """The attributes and buffers in whose place there is now something else, with tensors that the model did not
        hold before; and one that holds such tensors otherwise, so that they cannot be replaced: within what was there
        before, or in what cannot be copied or looked into as an output can be.
        """
        found = []
        for holder, place, name, value in _attributes(model):
            new = self._new(reached([value]))
            if new and (isinstance(holder, type) or id(value) in self._others or not new <= self._new(_copied(value))):
                return [], name
            if new:
                found.append((weakref.ref(holder), place, name))
        return found, None

    def _new(self, values: Iterable[Any]) -> set[int]:
        import torch

        found = [one for one in values if isinstance(one, torch.Tensor) and one.is_floating_point()]
        return {id(one) for one in found if id(one) not in self._others}


class Outside:
    """The variables outside of a model that its forward uses (`reach`), and the elements of those that are containers
    or objects.
    """

    def __init__(self, model: Any) -> None:
        self._values = variables(model)
        inside = [(name, container(value)) for (_, name), value in self._values.items()]
        self._containers = [(name, one, copy_of(one)) for name, one in inside if one is not None]

    def changed(self, model: Any) -> dict[str, Any]:
        """By name, those that are another now, or hold something else, or that a call takes something from."""
        now = variables(model)
        others = {
            key[1]: now.get(key)
            for key, value in self._values.items()
            if now.get(key) is not value or hasattr(type(value), "__next__")
        }
        return others | {name: one for name, one, kept in self._containers if not is_as(one, kept)}


def restore(attributes: Collection[Attribute], half: Any, known: Known) -> None:
    """Have what a call has left in these attributes in FP32 where it is in the dtype `half`. `known` are replacements
    that were made for its output, which are used here as well.
    """
    for holder, name in _places(attributes):
        value = holder[name]
        last = range(-min(len(value), LAST), 0) if type(value) in (list, deque) else ()
        for place, key in ((value, key) for key in last) if last else ((holder, name),):
            with suppress(Uncopied):
                place[key] = restored(place[key], half, known=known)


def values(attributes: Collection[Attribute]) -> list[Any]:
    """The present values of some attributes of a model."""
    return [holder[name] for holder, name in _places(attributes)]


def _places(attributes: Collection[Attribute]) -> Iterator[tuple[Any, str]]:
    for module, place, name in attributes:
        holder = getattr(module(), place, None)  # a module that is gone has none
        if holder is not None and name in holder:
            yield holder, name


def containers_in(values: Iterable[Any]) -> list[Any]:
    """The containers, the attributes of objects and the arrays that these values are or hold, some levels deep."""
    inner = [one for one in reached(values) if not isinstance(one, _skipped())]
    return [found for one in inner if (found := one if is_array(one) else container(one)) is not None]


def differs(one: Any, kept: Any) -> bool:
    """Whether a tensor has other elements than a copy of it. It has not where torch cannot compare them."""
    import torch

    if type(one) not in (torch.Tensor, torch.nn.Parameter):
        return False
    try:
        return not torch.equal(one, kept) and not torch.equal(one.nan_to_num(), kept.nan_to_num())
    except RuntimeError as error:
        if is_for_the_program(error):
            raise
        return False


def _copied(value: Any) -> list[Any]:
    """The tensors in a value that can be replaced in a copy of it."""
    with suppress(Uncopied):
        changed(value, lambda tensor: tensor.detach())
        return list(tensors(value))
    return []


def _attributes(model: Any) -> Iterator[tuple[Any, str, str, Any]]:
    """The attributes and buffers of all modules, and the attributes of their classes: whose, where, its name, itself"""
    import torch

    torchs = {PLACE, *vars(torch.nn.Module())}
    modules = list(model.modules())
    classes = dict.fromkeys(one for module in modules for one in type(module).__mro__)
    for one in (*modules, *(one for one in classes if not one.__module__.startswith("torch."))):
        yield from ((one, "__dict__", name, value) for name, value in list(vars(one).items()) if name not in torchs)
    for one in modules:
        yield from ((one, "_buffers", name, value) for name, value in list(one._buffers.items()))


def reached(found: Iterable[Any]) -> Iterator[Any]:
    """These values, and what they hold, some levels deep."""
    skipped = _skipped()
    known: set[int] = set()
    found = list(found)
    for _ in range(DEEP):
        yield from found
        level = []
        for one in found:
            if not (one is None or isinstance(one, skipped) or id(one) in known or len(known) == MOST):
                known.add(id(one))
                level.append(one)
        found = [value for one in level for value in _inside(one)]
    yield from found


def _skipped() -> tuple[type, ...]:
    """The types of what is not looked into."""
    import torch

    return (torch.nn.Module, torch.Tensor, type, ModuleType, FunctionType, property, str, bytes, int, float, complex)


def _inside(one: Any) -> Iterable[Any]:
    """The elements of a container, or the attributes of an object, also those in slots."""
    if isinstance(one, dict | list | tuple | set | frozenset | deque):
        elements = one.values() if isinstance(one, dict) else one
        return list(elements) if len(one) <= MOST_ELEMENTS else ()
    attributes = getattr(one, "__dict__", None)
    return [*in_slots(one), *(attributes.values() if isinstance(attributes, dict) else ())]
