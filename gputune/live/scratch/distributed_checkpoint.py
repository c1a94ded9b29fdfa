"""torch.distributed.checkpoint, whose writers and readers of files know the folder."""

from types import ModuleType
from typing import Any

from ._rerouting import Paths, Places, wrap

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


def redirect(module: ModuleType, places: Places) -> None:
    def look_again(original: Any, self: Any, *inputs: Any, **named: Any) -> Any:
        """A reader may be made before the checkpoint is saved. Each load begins with these."""
        self.path = places.read(self.path)
        return original(self, *inputs, **named)

    if module.__name__ == FILESYSTEM:
        for name in ("read_metadata", "set_up_storage_reader"):
            wrap(module.FileSystemReader, name, look_again)
