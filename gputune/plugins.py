"""Plug-ins: one file each of a package, whose name is the file's. There is no registry to edit.

Files whose name begins with an underscore, and folders, hold what the plug-ins of a package share.
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from types import ModuleType
from typing import Protocol


class Plugin(Protocol):
    """A module of a package of plug-ins. The docstring is what `gputune explain NAME` prints."""

    __name__: str
    __doc__: str | None


@cache
def names(package: str) -> tuple[str, ...]:
    """Return the sorted names of the plug-ins of an imported package, given by its dotted name."""
    files = (name for folder in sys.modules[package].__path__ for name in os.listdir(folder))  # noqa: PTH208 - cheaper
    plugins = (name[:-3] for name in files if name.endswith(".py") and not name.startswith("_"))
    return tuple(sorted(filter(str.isidentifier, plugins)))


def load(package: str, name: str) -> ModuleType:
    """Return the module of one plug-in. Raises KeyError for a name that is not a plug-in's."""
    if name not in names(package):
        raise KeyError(name)
    return importlib.import_module(f"{package}.{name}")
