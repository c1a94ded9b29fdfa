"""Sockets that have a path, which C binds: beside one of the user's that the program removed there is no room."""

import os
import posix
from types import ModuleType
from typing import Any

from ._rerouting import Paths, wrapped

PATHS: Paths = {"socket": []}
MOST = 107
"""The most bytes of a socket's path."""


def redirect(module: ModuleType, view: Any) -> None:
    known: dict[Any, Any] = {}
    """The program's names of sockets, by those that the system knows."""

    def at(place_of: Any) -> Any:
        def call(original: Any, itself: Any, address: Any) -> Any:
            is_path = itself.family == module.AF_UNIX and isinstance(address, str | bytes | os.PathLike)
            place = place_of(address) if is_path else address
            if place is address:
                return original(itself, address)
            folder, _, name = os.fsdecode(place).rpartition("/")
            descriptor = posix.open(folder, os.O_PATH | os.O_CLOEXEC)
            try:
                short = f"/proc/self/fd/{descriptor}/{name}" if len(os.fsencode(place)) > MOST else place
                known[short] = os.fsdecode(address)
                return original(itself, short)
            finally:
                posix.close(descriptor)

        return call

    def name(original: Any, itself: Any) -> Any:
        address = original(itself)
        return known.get(address, address) if isinstance(address, str) else address

    def send(original: Any, itself: Any, data: Any, *inputs: Any) -> Any:
        *flags, address = inputs or (None,)  # which the system refuses
        return at(view.read)(lambda one, place: original(one, data, *flags, place), itself, address)

    instead = {
        "bind": at(view.created),
        "connect": at(view.read),
        "connect_ex": at(view.read),
        "sendto": send,
        "getsockname": name,
    }
    for one, function in instead.items():
        setattr(module.socket, one, wrapped(getattr(module.socket, one), function))
