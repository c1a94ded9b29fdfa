"""Calls that wait until a module has been imported."""

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
        self.waiting: dict[str, list[tuple[Then, str]]] = {}
        """Kept after the call: a module that is imported anew has its own functions again."""

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

    def imported(self, name: str, module: ModuleType) -> None:
        for then, without in self.waiting[name]:
            _call(then, without, module)

    def _follow(self, name: str, loader: Any) -> None:
        body = getattr(loader, "exec_module", None)
        if body is None or isinstance(loader, type):
            return

        def exec_module(module: ModuleType) -> None:
            body(module)
            if module.__name__ == name:
                self.imported(name, module)

        with suppress(Exception):
            loader.exec_module = exec_module


class _Followed(ModuleSpec):
    """The spec of a module whose import has already begun. That it has ended is noted in the spec, and only there."""

    def __setattr__(self, key: str, value: Any) -> None:
        super().__setattr__(key, value)
        if key == "_initializing" and not value:
            self.__class__ = ModuleSpec  # type: ignore[assignment]  # as it was before it was followed
            if module := sys.modules.get(self.name):
                _finder.imported(self.name, module)


_finder = _Finder()


def after(name: str, then: Then, without: str) -> None:
    """Call `then` with a module once it has been imported; now, if it has been. If it raises, `without` says on stderr
    what the program goes on without.
    """
    _finder.waiting.setdefault(name, []).append((then, without))
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    module = sys.modules.get(name)
    if module is not None and not _will_tell(module):
        _call(then, without, module)


def _will_tell(module: ModuleType) -> bool:
    """Whether the module is still being imported, as one is that itself imports torch, and its spec tells the end."""
    spec = getattr(module, "__spec__", None)
    if not getattr(spec, "_initializing", False):
        return False
    with suppress(TypeError):  # a spec of a class of its own
        spec.__class__ = _Followed
    return isinstance(spec, _Followed)


def _call(then: Then, without: str, module: ModuleType) -> None:
    """A library that has changed must not make the program's import fail."""
    try:
        then(module)
    except Exception as error:
        from . import say

        say(f"{without}: {type(error).__name__}: {error}")
