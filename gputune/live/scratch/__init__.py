"""Keeps a user's checkpoints as they are while a program is being tuned: what is saved goes to a scratch folder.

Each file is about one library. It has `MODULES`, the modules that it changes, and `redirect(module, places)`, which is
called right after each of them was imported, so that a program's own `from ... import ...` gets what was changed. What
a program writes by itself, with `open`, it writes.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Protocol, cast

from ... import plugins
from . import _imports
from ._places import Places


class Redirection(plugins.Plugin, Protocol):
    MODULES: tuple[str, ...]

    def redirect(self, module: ModuleType, places: Places) -> None: ...


def redirect(folder: str) -> None:
    """From now on in this process, write checkpoints below `folder`. What cannot be redirected is named on stderr."""
    places = Places(folder)
    for name in plugins.names(__name__):
        one = cast(Redirection, plugins.load(__name__, name))
        for module in one.MODULES:
            _imports.after(module, partial(one.redirect, places=places))
