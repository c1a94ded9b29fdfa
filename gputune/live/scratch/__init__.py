"""Keeps a user's checkpoints as they are while a program is being tuned: what is saved goes to a scratch folder.

Each file is about one library. It has `PATHS`, by module that it changes, and may have `redirect(module, places)`. Both
take effect right after the module was imported, so that a program's own `from ... import ...` gets what was changed.
What a program writes by itself, with `open`, it writes.
"""

from functools import partial
from types import ModuleType
from typing import Any

from ... import plugins
from .. import imports
from ._rerouting import Places, reroute


def redirect(folder: str) -> None:
    """From now on in this process, write checkpoints below `folder`. What cannot be redirected is named on stderr."""
    places = Places(folder)
    for name in plugins.names(__name__):
        one: Any = plugins.load(__name__, name)
        for module in one.PATHS:
            imports.after(module, partial(_redirect, one, places), f"checkpoints of {module} are not redirected")


def _redirect(one: Any, places: Places, module: ModuleType) -> None:
    for function, parameter, place in one.PATHS.get(module.__name__, ()):
        reroute(module, function, parameter, getattr(places, place))
    if hasattr(one, "redirect"):
        one.redirect(module, places)
