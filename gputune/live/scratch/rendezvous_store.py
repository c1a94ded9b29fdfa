"""The files by which processes of torch.distributed meet, which torch writes in C++."""

from types import ModuleType
from typing import Any

from ._rerouting import Paths, wrap

PATHS: Paths = {"torch.distributed": []}


def redirect(module: ModuleType, places: Any) -> None:
    def begin(original: Any, itself: Any, path: Any, *inputs: Any, **named: Any) -> None:
        original(itself, places.written(path, keeps=True), *inputs, **named)

    if hasattr(module, "FileStore"):
        wrap(module.FileStore, "__init__", begin)
