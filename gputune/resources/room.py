"""The resources that one rank has for loading data: CPUs, shared memory, and a folder for temporary files."""

import tempfile
from dataclasses import dataclass

from . import cpus, scheduler
from .files import Files
from .unreadable import Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """None where a value could not be read."""

    cpus: int | None = None
    shm_bytes: int | None = None
    """This rank's share of the free part of /dev/shm, through which workers pass their batches."""
    temporary: bool = True
    """Whether there is a folder for temporary files, without which workers hang."""


def room(files: Files) -> Room:
    """The resources that are available now."""
    granted = scheduler.read(files)
    try:
        shm_bytes = files.space_bytes("/dev/shm")[1] // granted.local_ranks
    except Unreadable:
        shm_bytes = None
    return Room(cpus=cpus.rank_budget(files, granted), shm_bytes=shm_bytes, temporary=temporary_folder())


def temporary_folder() -> bool:
    """Whether this process has a folder for temporary files, which it lacks under a read-only root without a /tmp.

    DataLoader workers create the socket there through which they pass their batches; without it torch waits forever.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True
