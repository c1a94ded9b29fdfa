"""Files of safetensors: all of its ways to save go through `serialize_file`, and those to load through `safe_open`."""

from types import ModuleType

from ._places import Places
from ._rerouting import Paths, reroute_all

PATHS: Paths = {"safetensors": [("serialize_file", "filename", "written"), ("safe_open", "filename", "read")]}
MODULES = tuple(PATHS)


def redirect(module: ModuleType, places: Places) -> None:
    reroute_all(module, module.__name__, PATHS, places)
