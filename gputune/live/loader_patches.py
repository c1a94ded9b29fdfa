"""The patches of torch's DataLoaders. Each function makes one patch and returns a function that undoes it."""

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..knobs._signals import is_for_the_program
from .loading import asked_late, made_with
from .patches import Function, Undo, noted, replaced, together


def loader_made(made: Callable[[Any, dict[str, Any]], None]) -> Undo:
    """Wrap the making of DataLoaders. `made` gets a loader, before it is made, and its arguments by name."""
    from torch.utils.data import DataLoader

    signature = inspect.signature(DataLoader.__init__)

    def note(loader: Any, *inputs: Any, **named: Any) -> None:
        with suppress(Exception):  # whatever is wrong with the arguments, torch says it
            given = signature.bind(loader, *inputs, **named).arguments
            made(loader, {name: value for name, value in given.items() if value is not loader})

    return noted(DataLoader, "__init__", note)


def loader_iterated(values: Callable[[Any], dict[str, Any]]) -> Undo:
    """Have a loader's iterator made with the attributes that `values` returns for it; its sampler is asked late."""
    from torch.utils.data import DataLoader

    original = DataLoader._get_iterator

    @functools.wraps(original)
    def _get_iterator(self: Any) -> Any:
        try:
            given = values(self)
        except Exception as error:
            if is_for_the_program(error):
                raise
            given = {}  # so that the program gets its batches in any case
        return made_with(self, given, functools.partial(asked_late, original)) if given else original(self)

    return replaced(DataLoader, "_get_iterator", _get_iterator)


def loader_iterators(made: Callable[[Any, Any], None], following: Callable[[Any, Function], Any]) -> Undo:
    """Wrap the iterators of DataLoaders. `made` gets an iterator and its loader, `following` its `__next__` as well."""
    from torch.utils.data import dataloader

    kind = dataloader._BaseDataLoaderIter
    original = kind.__next__

    @functools.wraps(original)
    def next_batch(self: Any) -> Any:
        return following(self, original)

    return together([noted(kind, "__init__", made), replaced(kind, "__next__", next_batch)])
