"""torch.distributed.checkpoint, whose writers and readers of files know the folder."""

import functools
from types import ModuleType
from typing import Any

from ._places import Places
from ._rerouting import Paths, replace, reroute_all

FILESYSTEM = "torch.distributed.checkpoint.filesystem"
PATHS: Paths = {
    FILESYSTEM: [
        ("_FileSystemWriter.__init__", "path", "written"),
        ("_FileSystemWriter.reset", "checkpoint_id", "written"),
        ("FileSystemWriter.__init__", "path", "written"),
        ("FileSystemWriter.reset", "checkpoint_id", "written"),  # its own in older releases
        ("FileSystemReader.__init__", "path", "read"),
        ("FileSystemReader.reset", "checkpoint_id", "read"),
    ],
    "torch.distributed.checkpoint._fsspec_filesystem": [
        ("FsspecWriter.__init__", "path", "written"),
        ("FsspecReader.__init__", "path", "read"),
    ],
}
MODULES = tuple(PATHS)


def redirect(module: ModuleType, places: Places) -> None:
    reroute_all(module, module.__name__, PATHS, places)
    if module.__name__ == FILESYSTEM:
        for name in ("read_metadata", "set_up_storage_reader"):
            _look_again(module.FileSystemReader, name, places)


def _look_again(kind: Any, name: str, places: Places) -> None:
    """A reader may be made before the checkpoint is saved. Each load begins with these."""
    original = getattr(kind, name)

    @functools.wraps(original)
    def looked(self: Any, *inputs: Any, **named: Any) -> Any:
        self.path = places.read(self.path)
        return original(self, *inputs, **named)

    replace(kind, name, looked)
