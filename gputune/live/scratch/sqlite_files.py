"""Databases of SQLite, which is all C."""

from types import ModuleType
from typing import Any

from ._rerouting import Paths, wrap

PATHS: Paths = {"sqlite3": []}


def redirect(module: ModuleType, places: Any) -> None:
    def connect(original: Any, database: Any, *inputs: Any, **named: Any) -> Any:
        is_file = database not in ("", b"", ":memory:", b":memory:") and not named.get("uri")
        return original(places.written(database, keeps=True) if is_file else database, *inputs, **named)

    wrap(module, "connect", connect)
