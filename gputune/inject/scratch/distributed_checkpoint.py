"""torch.distributed.checkpoint, whose writers and readers of files know the folder."""

from types import ModuleType

from ._places import Places, reroute

MODULES = ("torch.distributed.checkpoint.filesystem",)


def redirect(module: ModuleType, places: Places) -> None:
    for writer in (module.FileSystemWriter, module._FileSystemWriter):
        reroute(writer, "__init__", "path", places.written)
        reroute(writer, "reset", "checkpoint_id", places.written)
    reroute(module.FileSystemReader, "__init__", "path", places.read)
    reroute(module.FileSystemReader, "reset", "checkpoint_id", places.read)
