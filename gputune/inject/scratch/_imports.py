"""Calls that wait until a module has been imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Then = Callable[[ModuleType], None]


class _Finder:
    """Lets the finders behind it find a module, and follows the loader that they return."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Then]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self.waiting or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                self._follow(name, spec.loader)
                return spec
        return None

    def _follow(self, name: str, loader: Any) -> None:
        body = getattr(loader, "exec_module", None)
        if body is None or isinstance(loader, type):
            return

        def exec_module(module: ModuleType) -> None:
            body(module)
            if module.__name__ == name:
                _call(self.waiting.pop(name, []), module)

        with suppress(Exception):
            loader.exec_module = exec_module


_finder = _Finder()


def after(name: str, then: Then) -> None:
    """Call `then` with a module once it has been imported; now, if it has been."""
    if name in sys.modules:
        _call([then], sys.modules[name])
        return
    _finder.waiting.setdefault(name, []).append(then)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _call(waiting: list[Then], module: ModuleType) -> None:
    """A release of a library that has changed must not make the program's import fail."""
    for then in waiting:
        with suppress(AttributeError):
            then(module)
