"""The file by which processes of torch.distributed meet at `file://`, which torch writes in C++."""

from types import ModuleType
from typing import Any

from ._rerouting import Paths

PATHS: Paths = {"torch.distributed.rendezvous": []}


def redirect(module: ModuleType, places: Any) -> None:
    original = module.FileStore

    def store(path: Any, *inputs: Any) -> Any:
        return original(places.written(path, keeps=True), *inputs)

    module.FileStore = store  # type: ignore[attr-defined]  # here alone: elsewhere it is asked for as a class
