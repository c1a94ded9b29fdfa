"""Databases of SQLite, which is all C. What a statement attaches or copies to is named, not redirected."""

import os
import sys
from types import ModuleType
from typing import Any

from ._disk import mode_of, path_in_uri
from ._rerouting import Paths, wrap

PATHS: Paths = {"sqlite3": []}
BESIDE = ("-wal", "-journal")
"""The ends of the names of what belongs to a database whose last change is not whole. (SQLite makes `-shm` anew.)"""


def redirect(module: ModuleType, places: Any) -> None:
    def connect(original: Any, database: Any, *inputs: Any, **named: Any) -> Any:
        made = original(_place(database, places, is_uri=bool(named.get("uri"))), *inputs, **named)
        made.set_authorizer(tell)
        return made

    def tell(action: int, name: str | None, *_: object) -> int:
        if action == module.SQLITE_ATTACH and name:
            sys.audit("sqlite3.connect", name)
        return 0

    wrap(module, "connect", connect)


def _place(database: Any, places: Any, *, is_uri: bool) -> Any:
    if not isinstance(database, str | bytes | os.PathLike):
        return database
    path, rest = path_in_uri(os.fsdecode(database)) if is_uri else (os.fsdecode(database), "")
    if path in {"", ":memory:"} or "mode=memory" in rest:
        return database
    users = places.read(path)
    if users == path:  # of a copy they may be there no more
        for one in (f"{path}{end}" for end in BESIDE):
            if mode_of(places.read(one)):
                places.written(one, keeps=True)
    place = places.written(path, keeps=True)
    if place == path:
        return database
    if not is_uri:
        return place
    from urllib.parse import quote

    return f"file:{quote(place)}{rest}"
