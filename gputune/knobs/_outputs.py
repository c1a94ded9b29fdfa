"""Find and change the tensors in a model's outputs and inputs, at any depth."""

import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

PLAIN = frozenset((int, float, complex, bool, str, bytes, NoneType))
"""The types, exactly, that hold no tensor."""
LONG = 16
"""A container of this many elements or more is skipped if all are plain. Asking that of shorter ones takes longer than
looking into each element."""
MOST_NODES = 100_000
"""The nodes of an autograd graph that are looked at."""


Known = dict[int, tuple[Any, Any]]
"""By its id, what was replaced, and by what."""


class Uncopied(TypeError):
    """An output whose class makes no copy with other tensors, as a setting needs it."""

    def __init__(self, output: Any, setting: str | None = None) -> None:
        super().__init__(f"its output, of the class {type(output).__name__}, cannot be copied with other tensors")
        self.output, self.setting = output, setting


def changed(
    output: Any,
    change: Callable[[Any], Any],
    known: Known | None = None,
    *,
    container: Callable[[Any], Any] = copy.copy,
) -> Any:
    """The output with every tensor changed, at any depth of tuples, lists, mappings, dataclasses and torch's
    distributions. What holds none that becomes another one is returned as it is, and what is in several places becomes
    one and the same, also in what else is changed with the same `known`. `container` gives what the changed ones are
    put into instead of a list, a mapping or an object. Raises `Uncopied` if a class takes no other tensors.

    Types are kept, named tuples among them. Tensors that are attributes of a container or a tensor are changed, too.
    """
    known = {} if known is None else known
    if type(output) in PLAIN:
        return output
    if id(output) not in known:
        known[id(output)] = output, _changed(output, change, known, container)
    return known[id(output)][1]


def in_place(output: Any, change: Callable[[Any], Any], known: Known | None = None) -> Any:
    """As `changed`, in the lists, mappings and objects themselves: an output may be one of the call's inputs, or one
    that the model goes on with.
    """
    return changed(output, change, known, container=_itself)


def _itself(output: Any) -> Any:
    return output


def _changed(output: Any, change: Callable[[Any], Any], known: Known, container: Callable[[Any], Any]) -> Any:
    import torch

    if isinstance(output, torch.Tensor):
        new = change(output)
        if type(output) is not torch.Tensor or (new is output and container is not _itself):
            return new
        return _with(new, {**vars(output), **_changed_attributes(output, change, known)})
    before = list(items(output))
    found = [(key, changed(one, change, known, container=container)) for key, one in before]
    inside = [after for (_, was), after in zip(before, found, strict=True) if after[1] is not was]
    own = _changed_attributes(output, change, known)
    if not inside and not own:
        return output
    try:
        if not isinstance(output, tuple):
            return _with(_filled(container(output), inside), own)
        elements = [one for _, one in found]
        made = type(output)(*elements) if hasattr(output, "_fields") else type(output)(elements)
        return _with(made, {**getattr(output, "__dict__", {}), **own})
    except Exception as error:
        raise Uncopied(output) from error


def _filled(container: Any, items: Collection[tuple[Any, Any]]) -> Any:
    for key, one in items:
        if isinstance(container, dict | list):
            container[key] = one
        else:
            object.__setattr__(container, key, one)
    return container


def _attributes(output: Any) -> Iterator[tuple[str, Any]]:
    """The tensors that a tensor or a container has besides its elements."""
    import torch

    own = getattr(output, "__dict__", None)
    is_looked_into = type(output) is torch.Tensor or isinstance(output, dict | list | tuple) or is_dataclass(output)
    if own and own is not output and is_looked_into and not isinstance(output, type):
        yield from ((name, one) for name, one in own.items() if isinstance(one, torch.Tensor))


def _changed_attributes(output: Any, change: Callable[[Any], Any], known: Known) -> dict[str, Any]:
    """Change the tensors among an output's attributes, and return by name those that became others. The attributes of
    these tensors stay as they are: they may lead to all steps before.
    """
    found = {}
    for name, one in _attributes(output):
        new = known[id(one)][1] if id(one) in known else change(one)
        known[id(one)] = one, new
        if new is not one:
            found[name] = _with(new, vars(one))
    return found


def _with(new: Any, attributes: Mapping[str, Any]) -> Any:
    if attributes:
        vars(new).update(attributes)
    return new


def tensors(output: Any) -> Iterator[Any]:
    """Every tensor in an output, or among the inputs of a call, and those that are its attributes."""
    import torch

    inside = [] if isinstance(output, torch.Tensor) else [one for _, one in items(output)]
    if isinstance(output, torch.Tensor):
        yield output
    for one in inside:
        yield from tensors(one)
    yield from (one for _, one in _attributes(output) if not any(one is other for other in inside))


def leaves(output: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every tensor in an output with its place in it, as `[0]['codes']`. Numbers and lists of them are made tensors."""
    import torch

    numbers = output if isinstance(output, list | tuple) and output else [output]
    if isinstance(output, torch.Tensor):
        yield place, output
    elif all(isinstance(one, int | float | complex) for one in numbers):
        yield place, torch.tensor(output)
    else:
        for key, one in items(output):
            yield from leaves(one, f"{place}[{key!r}]")


def opaque(output: Any) -> str | None:
    """The class of something in an output that may hold tensors and is none of what is looked into; None without."""
    import torch

    if output is None or isinstance(output, torch.Tensor | bool | int | float | complex | str | bytes):
        return None
    inside = [one for _, one in items(output)]
    if not inside and not isinstance(output, tuple | list | dict):
        return type(output).__name__
    return next(filter(None, map(opaque, inside)), None)


def nodes_behind(outputs: Collection[Any]) -> set[Any]:
    """The nodes of an autograd graph."""
    waiting = [one.grad_fn for one in outputs if one.grad_fn is not None]
    known = set(waiting)
    while waiting and len(known) < MOST_NODES:
        for following, _ in waiting.pop().next_functions:
            if following is not None and following not in known:
                known.add(following)
                waiting.append(following)
    return known


def _is_plain(found: Collection[Any]) -> bool:
    return len(found) >= LONG and PLAIN.issuperset(map(type, found))


def items(output: Any) -> Iterator[tuple[Any, Any]]:
    """The elements of an output or an input in which tensors may be, with their keys."""
    if isinstance(output, dict):
        if not _is_plain(output.values()):
            yield from output.items()
    elif isinstance(output, list | tuple):
        if not _is_plain(output):
            yield from enumerate(output)
    elif is_dataclass(output) and not isinstance(output, type):
        yield from ((field.name, getattr(output, field.name, None)) for field in fields(output))
    elif type(output) not in PLAIN:
        from torch.distributions import Distribution, Transform

        # A transform may keep the last tensor that it made, with what it made it from.
        if isinstance(output, Distribution | Transform):
            yield from vars(output).items()
