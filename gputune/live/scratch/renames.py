"""Renaming above copies of the user's folders: from one to another, or of a folder that the user may not redirect.

The system takes these for other disks. On the user's one disk the program would never see that.
"""

from types import ModuleType
from typing import Any

from ._disk import replace_across
from ._rerouting import Paths, replace, wrapped

PATHS: Paths = {"os": []}


def redirect(module: ModuleType, places: Any) -> None:
    for name in ("rename", "replace"):
        made = wrapped(getattr(module, name), lambda _, src, dst, **named: replace_across(src, dst, **named))
        made.__module__ = module.__name__
        replace(module, name, made)
