"""torch.save, and what torch.jit and torch.export save; loading finds again what was saved in this run."""

from types import ModuleType

from ._places import Places
from ._rerouting import Paths, reroute_all

PATHS: Paths = {
    "torch": [("save", "f", "written"), ("load", "f", "read")],
    "torch.jit": [("save", "f", "written"), ("load", "f", "read")],
    "torch.jit._script": [("RecursiveScriptModule.save", "f", "written")],
    "torch.export": [("save", "f", "written"), ("load", "f", "read")],
}
MODULES = tuple(PATHS)


def redirect(module: ModuleType, places: Places) -> None:
    reroute_all(module, module.__name__, PATHS, places)
