"""Databases of dbm, and so of shelve, that a library in C keeps: it puts an end of its own behind the name."""

import os
from types import ModuleType
from typing import Any

from ._disk import mode_of
from ._rerouting import Paths, wrap

PATHS: Paths = {"dbm.gnu": [], "dbm.ndbm": []}
ENDS = ("", ".db", ".dir", ".pag")


def redirect(module: ModuleType, places: Any) -> None:
    def opened(original: Any, file: Any, flag: str = "r", *inputs: Any) -> Any:
        name = os.fsdecode(file)
        if flag.startswith("r"):
            found = [places.read(f"{name}{end}").removesuffix(end) for end in ENDS]
            return original(next((place for place in found if place != name), name), flag, *inputs)
        for one in (f"{name}{end}" for end in ENDS[1:]):
            if mode_of(places.read(one)):
                places.written(one, keeps=True)
        return original(places.written(name, keeps=True), flag, *inputs)

    wrap(module, "open", opened)
