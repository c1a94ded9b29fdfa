"""torch.save, and what torch.jit and torch.export save, which write in C where they are given a path."""

from ._rerouting import Paths

PATHS: Paths = {
    "torch": [("save", "f", "written"), ("load", "f", "read")],
    "torch.jit": [("save", "f", "written"), ("load", "f", "read")],
    "torch.jit._script": [("RecursiveScriptModule.save", "f", "written")],
    "torch.export": [("save", "f", "written"), ("load", "f", "read")],
}
