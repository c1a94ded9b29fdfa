"""torch.save, what torch.jit, torch.export and torch.package save, files in memory, and profiles: all written in C."""

import os
from types import ModuleType
from typing import Any

from ._rerouting import Paths, wrap

PATHS: Paths = {
    "torch": [("save", "f", "written"), ("load", "f", "read")],
    "torch.jit": [("load", "f", "read"), ("save_jit_module_to_flatbuffer", "f", "written")],
    "torch.export": [("save", "f", "written"), ("load", "f", "read")],
    "torch.autograd.profiler": [("profile.export_chrome_trace", "path", "written")],
    "torch.profiler.profiler": [("ExecutionTraceObserver.register_callback", "output_file_path", "written")],
}


def redirect(module: ModuleType, places: Any) -> None:
    if module.__name__ != "torch":
        return

    def placed(how: Any) -> Any:
        def call(original: Any, itself: Any, file: Any, *inputs: Any, **named: Any) -> Any:
            is_path = isinstance(file, str | os.PathLike)
            return original(itself, how(os.fspath(file)) if is_path else file, *inputs, **named)

        return call

    def mapped(original: Any, filename: Any, shared: Any = False, *inputs: Any, **named: Any) -> Any:
        place = places.written(filename, keeps=True) if shared else places.read(filename)
        return original(place, shared, *inputs, **named)

    wrap(module._C.PyTorchFileWriter, "__init__", placed(places.written))
    wrap(module._C.PyTorchFileReader, "__init__", placed(places.read))
    wrap(module._C.ScriptModule, "save", placed(places.written))
    wrap(module._C.ScriptModule, "_save_for_mobile", placed(places.written))
    wrap(module._C.ScriptFunction, "save", placed(places.written))
    wrap(module, "from_file", mapped)
    original = module.UntypedStorage.from_file
    module.UntypedStorage.from_file = staticmethod(lambda *inputs, **named: mapped(original, *inputs, **named))
